#include <fmt/format.h>

#include <memory>
#include <utility>

#include "common/text.h"
#include "coordinator/cli/cli_queries.h"
#include "coordinator/cli/questions.h"
#include "coordinator/cli/time_text.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

struct ExplainOptions {
  Target target;
  std::string job;
  std::string artifact;
  bool json = false;
};

// A map as indented lines; the order is the map's own.
std::string fields_text(const ValueMap& fields, const std::string& indent = "") {
  std::string out;
  for (const auto& [name, item] : fields) {
    const auto* map = std::get_if<ValueMap>(&item);
    const auto* text = std::get_if<std::string>(&item);
    if (map == nullptr) {
      out += indent + name + ": " + (text ? *text : value_to_json(item).dump()) + "\n";
    } else if (!map->empty()) {
      out += indent + name + ":\n" + fields_text(*map, indent + "  ");
    }
  }
  return out;
}

// Lists of small maps as a line each.
ValueMap readable_result(const Value& result) {
  ValueMap metrics;
  for (const Value& metric : field_or<ValueList>(result, "metrics", {})) {
    std::string name = text_field(metric, "name");
    if (metric.map().contains("weight")) {
      name += fmt::format(" w={:g}", field_or<double>(metric, "weight", 0));
    }
    const std::int64_t count = integer_field(metric, "count");
    const std::int64_t missing = integer_field(metric, "missing");
    std::string text =
        count > 0
            ? fmt::format("{:g}, mean of {}",
                          field_or<double>(metric, "sum", 0) / static_cast<double>(count), count)
            : "no finite value";
    if (missing > 0) text += fmt::format(", {} missing", missing);
    metrics[name] = std::move(text);
  }
  ValueMap artifacts;
  for (const Value& file : field_or<ValueList>(result, "artifacts", {})) {
    artifacts[text_field(file, "name")] = fmt::format(
        "{} bytes, SHA-256 {}", integer_field(file, "size"), text_field(file, "digest"));
  }
  return ValueMap{{"attempt", integer_field(result, "attempt")},
                  {"worker", text_field(result, "worker")},
                  {"committed", time_text(integer_field(result, "committed_ms")) + " UTC"},
                  {"took", duration_text(integer_field(result, "duration_ms"))},
                  {"metrics", std::move(metrics)},
                  {"artifacts", std::move(artifacts)}};
}

std::string history_text(const Value& answer) {
  std::string out;
  for (const Value& event : field_or<ValueList>(answer, "events", {})) {
    std::string what = text_field(event, "what");
    if (what == "quarantined") what = "failed for good";
    std::string line = "  " + time_text(integer_field(event, "time_ms")) + "  " + what;
    if (const auto attempt = integer_field(event, "attempt"); attempt > 0) {
      line += fmt::format(", attempt {}", attempt);
    }
    if (const auto worker = text_field(event, "worker"); !worker.empty()) line += " on " + worker;
    if (const auto detail = text_field(event, "detail"); !detail.empty()) line += ": " + detail;
    out += line + "\n";
  }
  return out.empty() ? "" : "history (UTC):\n" + out;
}

// What the job is and how it stands comes first, what it is made of later, its history last.
std::string job_text(ValueMap fields) {
  const std::string history = history_text(fields);
  fields.erase("events");
  if (fields.contains("result")) fields["result"] = readable_result(fields["result"]);
  std::string out;
  for (const char* name : {"job", "experiment", "stage", "state", "problem", "why_waiting",
                           "what_to_do", "worker", "attempt", "failures", "progress"}) {
    if (auto field = fields.extract(name)) {
      ValueMap one;
      one.insert(std::move(field));
      out += fields_text(one);
    }
  }
  return out + fields_text(fields) + history;
}

// What to do about a job that will not come by itself.
std::string way_on(const Value& answer, const Target& target) {
  const std::string state = text_field(answer, "state");
  if (state != "failed" && state != "blocked") return "";
  const std::string where =
      target.connect.empty() ? " --store " + target.store : " --connect " + target.connect;
  const std::string command = "prefgrid retry " + text_field(answer, "experiment") + where;
  return state == "failed" ? "`" + command + "` lets it run again"
                           : "`" + command + "` lets the failed ones run again, and then this one";
}

int explain(const ExplainOptions& options, Output& out) {
  auto questions = Questions::open(options.target);
  if (!questions) return report_error(questions.error());
  if (!options.artifact.empty()) {
    const auto content = questions->artifact(options.job, options.artifact);
    if (!content) return report_error(content.error());
    out.print(*content);
    return exit_done;
  }
  auto answer = questions->ask("explain", {{"job", options.job}});
  if (!answer) return report_error(answer.error());
  ValueMap fields = answer->map();
  if (fields.contains("state")) fields["state"] = shown_state(text_field(*answer, "state"));
  const std::string next = way_on(fields, options.target);
  if (!next.empty()) fields["what_to_do"] = next;
  if (options.json) {
    out.print(value_to_json(fields).dump(2) + "\n");
    return exit_done;
  }
  out.print(job_text(std::move(fields)));
  return exit_done;
}

}  // namespace

VerbAction define_explain(CLI::App& command) {
  auto options = std::make_shared<ExplainOptions>();
  command.add_option("KEY", options->job, key_help)->required();
  add_target_options(command, options->target);
  command.add_option("--artifact", options->artifact,
                     "Print one of the files that the job made, e.g. generations.jsonl");
  command.add_flag("--json", options->json, "Print JSON");
  return [options](Output& out) { return explain(*options, out); };
}

}  // namespace prefgrid
