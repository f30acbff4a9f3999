#include "experiments/catalog/describe.h"

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "common/check.h"
#include "common/text.h"
#include "experiments/catalog/method_rows.h"

namespace prefgrid {
namespace {

using Json = nlohmann::ordered_json;

std::string bound(const Field& field, double value) {
  if (field.type == FieldType::integer) return std::to_string(std::llround(value));
  return format_double(value);
}

const char* type_name(FieldType type) {
  switch (type) {
    case FieldType::boolean:
      return "boolean";
    case FieldType::integer:
      return "integer";
    case FieldType::real:
      return "real";
    case FieldType::text:
      return "text";
  }
  PREFGRID_CHECK(false, "no such field type: " + std::to_string(static_cast<int>(type)));
}

template <class Names>
std::string joined(const Names& names, const std::string& separator = ", ") {
  std::string out;
  for (const auto& name : names) {
    if (!out.empty()) out += separator;
    out += name;
  }
  return out;
}

std::string default_text(const Field& field) {
  return field.default_value ? value_text(*field.default_value) : "must be given";
}

Json to_json(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  Json list = Json::array();
  for (const Value& item : value.list()) list.push_back(to_json(item));
  return list;
}

Json to_json(const Field& field) {
  Json out{{"name", field.name}, {"type", type_name(field.type)}};
  if (field.default_value) out["default"] = to_json(*field.default_value);
  out["required"] = !field.default_value.has_value();
  if (field.type == FieldType::integer || field.type == FieldType::real) {
    out["minimum"] = field.minimum;
    out["maximum"] = field.maximum;
  }
  if (!field.choices.empty()) out["choices"] = field.choices;
  out["help"] = field.help;
  return out;
}

Json to_json(const std::vector<Field>& fields) {
  Json out = Json::array();
  for (const Field& field : fields) out.push_back(to_json(field));
  return out;
}

ValueList default_weights() {
  ValueList list;
  for (const double weight : policy_accuracy_weights()) list.emplace_back(weight);
  return list;
}

constexpr std::string_view weights_help = "guidance weights w that policy accuracy is taken at";
constexpr std::string_view weights_allowed = "a list of numbers from 0 to 1e+06";

// --- terminal ---

// Wraps `text` at `width` columns, every line behind `indent` spaces.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width = 100) {
  const std::string margin(indent, ' ');
  std::string out;
  std::string line;
  for (const std::string& word : split(text, ' ')) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) {
      out += margin + line + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  return out + margin + line + "\n";
}

std::string terminal_field(std::string_view name, const std::string& value,
                           const std::string& allowed, std::string_view help) {
  return "    " + std::string(name) + " = " + value + "   (" + allowed + ")\n" +
         wrapped(std::string(help), 8);
}

std::string terminal_fields(const std::vector<Field>& fields) {
  std::string out;
  for (const Field& field : fields) {
    out += terminal_field(field.name, default_text(field), allowed_values(field), field.help);
  }
  return out;
}

std::string terminal_head(std::string_view name, std::uint32_t version, std::string_view summary) {
  return "  " + std::string(name) + "  (version " + std::to_string(version) + ")\n" +
         wrapped(std::string(summary), 4);
}

// --- Markdown ---

std::string markdown_row(std::string_view name, const std::string& value,
                         const std::string& allowed, std::string_view help) {
  return "| `" + std::string(name) + "` | " + value + " | " + allowed + " | " + std::string(help) +
         " |\n";
}

constexpr std::string_view markdown_header =
    "| field | default | allowed | meaning |\n|---|---|---|---|\n";

std::string markdown_fields(const std::vector<Field>& fields) {
  if (fields.empty()) return "No fields.\n\n";
  std::string out(markdown_header);
  for (const Field& field : fields) {
    const std::string value =
        field.default_value ? "`" + default_text(field) + "`" : default_text(field);
    out += markdown_row(field.name, value, allowed_values(field), field.help);
  }
  return out + "\n";
}

}  // namespace

std::string allowed_values(const Field& field) {
  switch (field.type) {
    case FieldType::boolean:
      return "true or false";
    case FieldType::integer:
      return "an integer from " + bound(field, field.minimum) + " to " +
             bound(field, field.maximum);
    case FieldType::real:
      return "a number from " + bound(field, field.minimum) + " to " + bound(field, field.maximum);
    case FieldType::text:
      return field.choices.empty() ? "text" : "one of " + joined(field.choices);
  }
  PREFGRID_CHECK(false, "no such field type: " + std::to_string(static_cast<int>(field.type)));
}

std::string value_text(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return format_double(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::string out;
  if (const auto* list = std::get_if<ValueList>(&value)) {
    for (const Value& item : *list) out += (out.empty() ? "" : ", ") + value_text(item);
    return "[" + out + "]";
  }
  for (const auto& [name, item] : value.map()) {
    out += (out.empty() ? "" : ", ") + name + ": " + value_text(item);
  }
  return "{" + out + "}";
}

std::string methods_json(const Catalog& catalog) {
  Json out;
  for (const MethodRow& row : catalog.methods) {
    Json stages = Json::array();
    if (row.reads_features) stages.push_back("embed");
    if (row.has_train) stages.push_back("train");
    if (row.has_adapt) stages.push_back("adapt");
    if (row.has_reward) stages.push_back("rm_accuracy");
    stages.push_back("policy_accuracy");
    stages.push_back("generate");
    out["methods"].push_back({{"name", row.name},
                              {"version", row.version},
                              {"summary", row.summary},
                              {"source", row.source},
                              {"stages", stages},
                              {"has_reward", row.has_reward},
                              {"reads_seed", row.train_reads_seed},
                              {"decoders", row.decoders},
                              {"fields", to_json(row.fields)}});
  }
  for (const DecoderRow& row : catalog.decoders) {
    out["decoders"].push_back({{"name", row.name},
                               {"version", row.version},
                               {"summary", row.summary},
                               {"needs_reward", row.needs_reward},
                               {"reads_seed", row.reads_seed},
                               {"fields", to_json(row.fields)}});
  }
  out["models"] = {{"fields", to_json(catalog.kind("pretrain")->fields)}};
  out["evaluation"] = {{"fields", to_json(catalog.evaluation)}};
  out["evaluation"]["fields"].push_back({{"name", "weights"},
                                         {"type", "list of reals"},
                                         {"default", to_json(Value(default_weights()))},
                                         {"required", false},
                                         {"minimum", 0},
                                         {"maximum", 1e6},
                                         {"help", weights_help}});
  for (const DatasetRow& row : catalog.datasets) {
    out["datasets"].push_back(
        {{"name", row.name}, {"summary", row.summary}, {"fields", to_json(row.fields)}});
  }
  return out.dump(2) + "\n";
}

std::string methods_table(const Catalog& catalog) {
  std::string out = "Methods\n";
  for (const MethodRow& row : catalog.methods) {
    out += terminal_head(row.name, row.version, row.summary);
    out += wrapped("source: " + std::string(row.source), 4);
    out += wrapped("decoding: " + joined(row.decoders), 4) + terminal_fields(row.fields);
  }
  out += "\nDecoders\n";
  for (const DecoderRow& row : catalog.decoders) {
    out += terminal_head(row.name, row.version, row.summary) + terminal_fields(row.fields);
  }
  const KindRow* model = catalog.kind("pretrain");
  out += "\nModels\n" + terminal_fields(model->fields);
  out += "\nEvaluation\n" + terminal_fields(catalog.evaluation);
  out += terminal_field("weights", value_text(Value(default_weights())),
                        std::string(weights_allowed), weights_help);
  out += "\nDatasets\n";
  for (const DatasetRow& row : catalog.datasets) {
    out += "  " + std::string(row.name) + "\n" + wrapped(std::string(row.summary), 4) +
           terminal_fields(row.fields);
  }
  return out;
}

std::string fields_markdown(const Catalog& catalog) {
  std::string out = "### dataset\n\n";
  for (const DatasetRow& row : catalog.datasets) {
    out += "`kind: " + std::string(row.name) + "` — " + std::string(row.summary) + "\n\n" +
           markdown_fields(row.fields);
  }
  out += "### models\n\n" + markdown_fields(catalog.kind("pretrain")->fields);
  out += "### methods\n\n";
  for (const MethodRow& row : catalog.methods) {
    out += "`" + std::string(row.name) + "` — " + std::string(row.summary) +
           ". Decoding: " + joined(row.decoders) + ". Source: " + std::string(row.source) +
           ".\n\n" + markdown_fields(row.fields);
  }
  out += "### decoding\n\n";
  for (const DecoderRow& row : catalog.decoders) {
    out += "`" + std::string(row.name) + "` — " + std::string(row.summary) + ".\n\n" +
           markdown_fields(row.fields);
  }
  std::string evaluation = markdown_fields(catalog.evaluation);
  evaluation.pop_back();  // the list stands in the same table
  out += "### evaluation\n\n" + evaluation;
  out += markdown_row("weights", "`" + value_text(Value(default_weights())) + "`",
                      std::string(weights_allowed), weights_help);
  return out;
}

}  // namespace prefgrid
