#include "coordinator/report/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "coordinator/report/metrics.h"
#include "coordinator/report/summary.h"

namespace prefgrid {
namespace {

std::string number(double value) {
  return fmt::format("{:.6g}", value);
}
std::string number(const std::optional<double>& value) {
  return value ? number(*value) : "";
}
std::string count(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "";
}

// RFC 4180: quoted where needed, quotes doubled.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

// A line of a summary as cells: the configuration's columns first, then the figures.
struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::size_t label_columns = 0;  // left-aligned; the figures are right-aligned
};

// "71.2 [64.0, 78.3]", with "(15 of 16)" where some users are missing.
std::string figure_text(const std::optional<SummaryFigure>& figure, Unit unit) {
  if (!figure) return "";
  std::string text = figure->value ? shown(*figure->value, unit) : "-";
  if (figure->low && figure->high) {
    text += " [" + shown(*figure->low, unit) + ", " + shown(*figure->high, unit) + "]";
  }
  if (figure->users_missing == 0) return text;
  return text + fmt::format(" ({} of {})", figure->users, figure->users + figure->users_missing);
}

TextTable text_table(const SummaryBlock& block) {
  TextTable table;
  table.header = {"method", "config", "backbone", "policy", "decoding", "w", "seed"};
  table.label_columns = table.header.size();
  for (const std::string& metric : block.metrics) {
    table.header.push_back(metric + unit_mark(unit_of(metric)));
  }
  for (const SummaryLine& line : block.lines) {
    std::vector<std::string> row = {line.method,     line.config,   line.backbone,
                                    line.policy,     line.decoding, number(line.weight),
                                    count(line.seed)};
    for (std::size_t i = 0; i < line.figures.size(); ++i) {
      row.push_back(figure_text(line.figures[i], unit_of(block.metrics[i])));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

bool empty_column(const TextTable& table, std::size_t column) {
  return std::all_of(table.rows.begin(), table.rows.end(),
                     [&](const auto& row) { return row[column].empty(); });
}

TextTable without_empty_columns(TextTable table) {
  for (std::size_t column = table.header.size(); column-- > 0;) {
    if (!empty_column(table, column)) continue;
    const auto offset = static_cast<std::ptrdiff_t>(column);
    table.header.erase(table.header.begin() + offset);
    for (auto& row : table.rows) row.erase(row.begin() + offset);
    if (column < table.label_columns) --table.label_columns;
  }
  return table;
}

std::size_t width(const std::string& text) {  // code points: "±" is one column wide
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string aligned(const TextTable& table) {
  std::vector<std::size_t> widths;
  for (const std::string& name : table.header) widths.push_back(width(name));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - width(cells[i]), ' ');
      line += i < table.label_columns ? cells[i] + padding : padding + cells[i];
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += "  " + line + "\n";
  };
  add_line(table.header);
  for (const auto& row : table.rows) add_line(row);
  return out;
}

std::string profile_text(const NumericsProfile& p) {
  return fmt::format("{}, {}, {}, {}, {} thread{}, {}", p.device, p.library, p.blas_kernel,
                     p.cpu_capability, p.threads, p.threads == 1 ? "" : "s", p.dtype);
}

std::string html_escape(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string html_table(const TextTable& table) {
  std::string out = "<div class=\"scroll\"><table>\n<tr>";
  for (const std::string& name : table.header) out += "<th>" + html_escape(name) + "</th>";
  out += "</tr>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const char* tag = i < table.label_columns ? "<td>" : "<td class=\"figure\">";
      out += tag + html_escape(row[i]) + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

TextTable missing_table(const ResultTable& table) {
  TextTable out;
  out.header = {"stage", "job", "method", "config", "backbone", "policy", "user", "reason"};
  out.label_columns = out.header.size();
  for (const MissingCell& cell : table.missing) {
    out.rows.push_back({cell.stage, cell.job, cell.method, cell.config, cell.backbone, cell.policy,
                        cell.user, cell.reason});
  }
  return out;
}

TextTable full_table(const ResultTable& table) {
  TextTable out;
  out.header = {"method", "config",  "backbone", "policy",   "decoding", "w",
                "seed",   "users",   "metric",   "unit",     "value",    "low",
                "high",   "n_users", "n_valid",  "n_missing"};
  out.label_columns = 10;
  for (const ResultRow& r : table.rows) {
    out.rows.push_back({r.method, r.config, r.backbone, r.policy, r.decoding, number(r.weight),
                        count(r.seed), r.user_group, r.metric, to_string(unit_of(r.metric)),
                        number(r.value), number(r.ci_low), number(r.ci_high),
                        std::to_string(r.n_users), std::to_string(r.n_valid),
                        std::to_string(r.n_missing)});
  }
  return out;
}

constexpr const char* html_style = R"(<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; }
h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.note { opacity: .75; margin-top: .2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid #8884; white-space: nowrap; }
th { font-weight: 600; border-bottom-width: 2px; }
td.figure { text-align: right; }
tr:hover td { background: #8881; }
pre { background: #8881; padding: 1rem; overflow-x: auto; border-radius: .4rem; }
summary { cursor: pointer; margin-top: 2rem; font-weight: 600; }
</style>
)";

constexpr const char* legend =
    "Means over users [95 % bootstrap interval over users]. Accuracies and rates in percent, "
    "ROUGE ×100, losses in nats.";
constexpr const char* missing_legend = " (15 of 16): the others of the group have no result.";

bool misses_users(const ResultTable& table) {
  return std::any_of(table.rows.begin(), table.rows.end(), [](const ResultRow& row) {
    return row.users_missing > 0 && !row.user_group.empty();
  });
}

// What a reader must know of the figures.
std::string legend_of(const ResultTable& table) {
  return std::string(legend) + (misses_users(table) ? missing_legend : "");
}

constexpr const char* weight_legend =
    " Policy accuracy is at the decoder's weight w; flip_rate is the share of pairs whose order "
    "differs from the base policy's (w = 0): below 5 % the reward hardly acts.";

}  // namespace

std::string to_csv(const ResultTable& table) {
  std::string out =
      "dataset,method,config,backbone,policy,decoding,weight,seed,user_group,metric,value,ci_low,"
      "ci_high,n_users,n_valid,n_missing\n";
  for (const ResultRow& r : table.rows) {
    for (const std::string* text :
         {&r.dataset, &r.method, &r.config, &r.backbone, &r.policy, &r.decoding}) {
      out += csv_field(*text) + ",";
    }
    out += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", number(r.weight), count(r.seed),
                       csv_field(r.user_group), csv_field(r.metric), number(r.value),
                       number(r.ci_low), number(r.ci_high), r.n_users, r.n_valid, r.n_missing);
  }
  return out;
}

std::string to_json(const ResultTable& table, int indent) {
  using Json = nlohmann::ordered_json;
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  const auto real = [](const std::optional<double>& value) {  // the same number as in the CSV
    return value ? Json(std::strtod(number(*value).c_str(), nullptr)) : Json(nullptr);
  };
  Json units = Json::object();
  for (const ResultRow& r : table.rows) units[r.metric] = to_string(unit_of(r.metric));
  Json rows = Json::array();
  for (const ResultRow& r : table.rows) {
    rows.push_back({{"dataset", r.dataset},
                    {"method", r.method},
                    {"config", r.config},
                    {"backbone", r.backbone},
                    {"policy", r.policy},
                    {"decoding", r.decoding},
                    {"weight", real(r.weight)},
                    {"seed", optional(r.seed)},
                    {"user_group", r.user_group},
                    {"metric", r.metric},
                    {"value", real(r.value)},
                    {"ci_low", real(r.ci_low)},
                    {"ci_high", real(r.ci_high)},
                    {"n_users", r.n_users},
                    {"n_valid", r.n_valid},
                    {"n_missing", r.n_missing}});
  }
  Json missing = Json::array();
  for (const MissingCell& c : table.missing) {
    missing.push_back({{"stage", c.stage},
                       {"job", c.job},
                       {"method", c.method},
                       {"config", c.config},
                       {"backbone", c.backbone},
                       {"policy", c.policy},
                       {"user", c.user},
                       {"reason", c.reason}});
  }
  const Json out = {
      {"experiment", table.experiment}, {"units", units}, {"rows", rows}, {"missing", missing}};
  return out.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_text(const ResultTable& table) {
  std::string out = legend_of(table) + "\n";
  for (const SummaryBlock& block : summarise(table)) {
    out += "\n" + block.title + "\n";
    out += aligned(without_empty_columns(text_table(block)));
  }
  if (table.profiles.size() > 1) {
    out += fmt::format("\nThese figures mix {} numerics profiles; see report.html.\n",
                       table.profiles.size());
  }
  if (!table.missing.empty()) {
    constexpr std::size_t shown = 10;
    ResultTable first = table;
    if (first.missing.size() > shown) first.missing.resize(shown);
    out += fmt::format("\nmissing: {}\n", table.missing.size());
    out += aligned(without_empty_columns(missing_table(first)));
    if (table.missing.size() > shown) {
      out +=
          fmt::format("  … and {} more (results --json lists all)\n", table.missing.size() - shown);
    }
  }
  return out;
}

std::string to_html(const ResultTable& table, const Provenance& provenance) {
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>" +
                    html_escape(table.experiment) + " · prefgrid</title>\n" + html_style +
                    "</head><body>\n<h1>" + html_escape(table.experiment) + "</h1>\n";
  out += "<p class=\"note\">" + legend_of(table) + weight_legend + "</p>\n";
  for (const SummaryBlock& block : summarise(table)) {
    out += "<h2>" + html_escape(block.title) + "</h2>\n";
    out += html_table(without_empty_columns(text_table(block)));
  }
  if (!table.missing.empty()) {
    out += fmt::format("<h2>Missing cells ({})</h2>\n", table.missing.size());
    out += html_table(without_empty_columns(missing_table(table)));
  }
  out += "<details><summary>Every figure</summary>\n" +
         html_table(without_empty_columns(full_table(table))) + "</details>\n";
  out +=
      "<h2>Provenance</h2>\n<p>prefgrid " + html_escape(provenance.software_version) + "</p>\n<ul>";
  for (const NumericsProfile& profile : table.profiles) {
    out += "<li>" + html_escape(profile_text(profile)) + "</li>";
  }
  out += "</ul>\n<pre>" + html_escape(provenance.spec_text) + "</pre>\n</body></html>\n";
  return out;
}

}  // namespace prefgrid
