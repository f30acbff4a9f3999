#include "coordinator/spec.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/text.h"
#include "coordinator/grid.h"
#include "coordinator/spec_fields.h"
#include "experiments/catalog/describe.h"
#include "experiments/catalog/method_rows.h"

namespace prefgrid {
namespace {

constexpr std::size_t most_rows = 10'000;                 // of methods or decoders, lists spanned
constexpr double highest_seed = 9'007'199'254'740'992.0;  // 2^53: every JSON reader keeps it
constexpr double highest_weight = 1e6;

template <class Row>
std::vector<std::string> names_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.emplace_back(row.name);
  return names;
}

// The fields as a job has them (defaults left out) and as tables name them.
ConfiguredRow configured(std::string name, YamlMark mark,
                         const std::vector<std::pair<const Field*, Value>>& point) {
  ConfiguredRow row{std::move(name), {}, "", mark};
  for (const auto& [field, value] : point) {
    if (!field->default_value || value != *field->default_value) {
      row.fields.emplace(field->name, value);
    }
    row.label +=
        (row.label.empty() ? "" : ",") + std::string(field->name) + "=" + value_text(value);
  }
  return row;
}

class SpecReader {
 public:
  SpecReader(const std::string& file_name, const Catalog& catalog)
      : catalog_(catalog), problems_(file_name) {
    spec_.file_name = file_name;
  }

  Result<ExperimentSpec> read(const YamlNode& root);

 private:
  const YamlMap* map_of(const YamlNode& node, const std::string& section,
                        const std::string& example);
  const YamlList* list_of(const YamlNode& node, const std::string& section,
                          const std::string& example);
  void experiment(const YamlNode& node);
  void dataset(const YamlNode& node);
  void models(const YamlNode& node);
  void model_shape(const ModelSpec& model);
  template <class Row>
  void rows(const YamlNode& node, const std::string& section, const std::string& what,
            const std::vector<Row>& known, std::vector<ConfiguredRow>& out);
  void span(const std::string& name, YamlMark mark, const std::vector<SpannedField>& fields,
            const std::string& section, std::vector<ConfiguredRow>& out);
  void evaluation(const YamlNode& node);
  void weights(const YamlNode& node);
  void policies(const YamlNode& node);
  void seeds(const YamlNode& node);
  void section(const std::string& name, const YamlNode& node);

  const Catalog& catalog_;
  Diagnostics problems_;
  ExperimentSpec spec_;
};

const YamlMap* SpecReader::map_of(const YamlNode& node, const std::string& section,
                                  const std::string& example) {
  const auto* map = std::get_if<YamlMap>(&node.content);
  if (map == nullptr || map->empty()) {
    problems_.report(node.mark, section + " is " + (map ? "empty" : node_kind(node)) +
                                    "; write a map, such as " + example);
    return nullptr;
  }
  return map;
}

const YamlList* SpecReader::list_of(const YamlNode& node, const std::string& section,
                                    const std::string& example) {
  const auto* list = std::get_if<YamlList>(&node.content);
  if (list == nullptr || list->empty()) {
    problems_.report(node.mark, section + " is " + (list ? "an empty list" : node_kind(node)) +
                                    "; write a list, such as " + example);
    return nullptr;
  }
  return list;
}

void SpecReader::experiment(const YamlNode& node) {
  const auto name = yaml_text(node);
  if (!name || !valid_name(*name)) {
    problems_.report(node.mark, "experiment is " + (name ? quoted(*name, 80) : node_kind(node)) +
                                    "; it takes a name of at most 64 letters, digits, '.', '_' "
                                    "and '-', starting with a letter or digit");
    return;
  }
  spec_.experiment = *name;
}

void SpecReader::dataset(const YamlNode& node) {
  const YamlMap* map = map_of(node, "dataset", "{kind: xorg, path: data/xorg}");
  if (map == nullptr) return;
  const auto kind = std::find_if(map->begin(), map->end(),
                                 [](const YamlEntry& entry) { return entry.key == "kind"; });
  const std::vector<std::string> known = names_of(catalog_.datasets);
  if (kind == map->end()) {
    problems_.report(node.mark, "dataset has no kind; give it: one of " + joined_names(known));
    return;
  }
  const auto name = yaml_text(kind->value);
  const DatasetRow* row = name ? catalog_.dataset(*name) : nullptr;
  if (row == nullptr) {
    const std::string text = name ? *name : node_kind(kind->value);
    problems_.report(kind->value.mark, unknown_name("dataset kind", text, "", known));
    return;
  }
  YamlMap rest;
  for (const YamlEntry& entry : *map) {
    if (entry.key != "kind") rest.push_back(entry);
  }
  spec_.dataset_mark = node.mark;
  spec_.dataset.emplace("kind", *name);
  for (const SpannedField& field :
       read_fields(row->fields, rest, node.mark, "dataset " + *name, false, problems_)) {
    if (!field.values.empty()) spec_.dataset.emplace(field.field->name, field.values.front());
  }
}

void SpecReader::models(const YamlNode& node) {
  const YamlMap* map = map_of(node, "models", "{tiny: {d_model: 96, layers: 4}}");
  if (map == nullptr) return;
  static const YamlMap none;
  for (const YamlEntry& entry : *map) {
    if (!valid_name(entry.key)) {
      problems_.report(entry.key_mark, "a model is called " + quoted(entry.key, 80) +
                                           "; a name has at most 64 letters, digits, '.', '_' and "
                                           "'-', and starts with a letter or digit");
      continue;
    }
    const auto* fields = std::get_if<YamlMap>(&entry.value.content);
    if (fields == nullptr && !std::holds_alternative<YamlNull>(entry.value.content)) {
      problems_.report(entry.value.mark, "model " + entry.key + " is " + node_kind(entry.value) +
                                             "; write a map, such as {d_model: 96, layers: 4}");
      continue;
    }
    ModelSpec model{entry.key, {}, entry.key_mark};
    for (const SpannedField& field :
         read_fields(catalog_.kind("pretrain")->fields, fields ? *fields : none, entry.key_mark,
                     "model " + entry.key, false, problems_)) {
      if (field.values.empty() || field.values.front() == field.field->default_value) continue;
      model.fields.emplace(field.field->name, field.values.front());
    }
    model_shape(model);
    const auto twin =
        std::find_if(spec_.models.begin(), spec_.models.end(),
                     [&](const ModelSpec& other) { return other.fields == model.fields; });
    if (twin != spec_.models.end()) {
      spec_.notes.push_back(problems_.place(model.mark) + ": models: " + model.name +
                            " means the same as " + twin->name + " and shares its jobs");
    }
    spec_.models.push_back(std::move(model));
  }
}

// Relations between fields that no single range expresses.
void SpecReader::model_shape(const ModelSpec& model) {
  const auto number = [&](std::string_view name) {
    return field_value(catalog_.kind("pretrain")->fields, model.fields, name).integer();
  };
  const auto stated = [&](std::string_view name) {
    return std::string(name) + " " + std::to_string(number(name));
  };
  const std::string owner = "model " + model.name + ": ";
  if (number("d_model") % number("heads") != 0) {
    problems_.report(model.mark, owner + stated("heads") + " does not divide " + stated("d_model") +
                                     "; choose a divisor");
  } else if (number("d_model") / number("heads") % 2 != 0) {
    problems_.report(model.mark, owner + stated("d_model") + " / " + stated("heads") +
                                     " is odd; rotary positions need an even width of a head");
  }
  if (number("heads") % number("kv_heads") != 0) {
    problems_.report(model.mark, owner + stated("kv_heads") + " does not divide " +
                                     stated("heads") +
                                     "; give kv_heads too (equal to heads, or a divisor of it)");
  }
}

template <class Row>
void SpecReader::rows(const YamlNode& node, const std::string& section, const std::string& what,
                      const std::vector<Row>& known, std::vector<ConfiguredRow>& out) {
  const std::string first(known.front().name);
  const YamlList* list = list_of(node, section, "[" + first + "]");
  if (list == nullptr) return;
  for (const YamlNode& item : *list) {
    std::string name;
    YamlMark mark = item.mark;
    static const YamlMap none;
    const YamlMap* fields = &none;
    if (const auto* scalar = std::get_if<YamlScalar>(&item.content)) {
      name = scalar->text;
    } else if (const auto* map = std::get_if<YamlMap>(&item.content); map && map->size() == 1) {
      name = map->front().key;
      mark = map->front().key_mark;
      const YamlNode& content = map->front().value;
      fields = std::get_if<YamlMap>(&content.content);
      if (fields == nullptr && std::holds_alternative<YamlNull>(content.content)) fields = &none;
      if (fields == nullptr) {
        problems_.report(content.mark, name + " has " + node_kind(content) +
                                           "; write its fields as a map, such as {field: value}");
        continue;
      }
    } else {
      problems_.report(mark, "an entry of " + section + " is " +
                                 (map ? "a map of several names" : node_kind(item)) +
                                 "; write one name, or one name with its fields: `- " + first +
                                 "` or `- " + first + ": {field: value}`");
      continue;
    }
    const auto row = std::find_if(known.begin(), known.end(),
                                  [&](const Row& candidate) { return candidate.name == name; });
    if (row == known.end()) {
      problems_.report(mark, unknown_name(what, name, "", names_of(known)));
      continue;
    }
    span(name, mark, read_fields(row->fields, *fields, mark, name, true, problems_), section, out);
  }
}

// Every combination of the fields' values, the last field fastest.
void SpecReader::span(const std::string& name, YamlMark mark,
                      const std::vector<SpannedField>& fields, const std::string& section,
                      std::vector<ConfiguredRow>& out) {
  std::size_t points = 1;
  for (const SpannedField& field : fields) {
    points *= field.values.size();
    if (points + out.size() > most_rows) {
      problems_.report(mark, name + " spans more than " + std::to_string(most_rows) +
                                 " combinations; shorten its lists");
      return;
    }
  }
  for (std::size_t point = 0; point < points; ++point) {
    std::vector<std::pair<const Field*, Value>> chosen(fields.size());
    std::size_t rest = point;
    for (std::size_t i = fields.size(); i-- > 0;) {
      chosen[i] = {fields[i].field, fields[i].values[rest % fields[i].values.size()]};
      rest /= fields[i].values.size();
    }
    ConfiguredRow row = configured(name, mark, chosen);
    const auto same = std::find_if(out.begin(), out.end(), [&](const ConfiguredRow& other) {
      return other.name == row.name && other.fields == row.fields;
    });
    if (same == out.end()) {
      out.push_back(std::move(row));
    } else {
      spec_.notes.push_back(problems_.place(mark) + ": " + section + ": " + name +
                            (row.label.empty() ? "" : " (" + row.label + ")") +
                            " means the same as line " + std::to_string(same->mark.line) +
                            " and is planned once");
    }
  }
}

void SpecReader::evaluation(const YamlNode& node) {
  const YamlMap* map = map_of(node, "evaluation", "{policy_items: 8, generation_items: 8}");
  if (map == nullptr) return;
  std::vector<Field> fields = catalog_.evaluation;
  // Known by name only: its list of values is read by weights().
  fields.push_back({"weights", FieldType::real, Value(0.0), 0, highest_weight, {}, ""});
  YamlMap rest;
  for (const YamlEntry& entry : *map) {
    if (entry.key == "weights") {
      weights(entry.value);
    } else {
      rest.push_back(entry);
    }
  }
  for (const SpannedField& field :
       read_fields(fields, rest, node.mark, "evaluation", false, problems_)) {
    if (field.values.empty() || field.values.front() == field.field->default_value) continue;
    spec_.evaluation.emplace(field.field->name, field.values.front());
  }
}

// Sorted and without repeats: their order and number mean nothing.
void SpecReader::weights(const YamlNode& node) {
  const YamlList* list = list_of(node, "weights", "[0, 0.5, 1, 2]");
  if (list == nullptr) return;
  const Field field{"a weight", FieldType::real, std::nullopt, 0, highest_weight, {}, ""};
  std::set<double> values;
  for (const YamlNode& item : *list) {
    if (const auto value = read_value(field, item, problems_)) values.insert(value->real());
  }
  const std::vector<double> defaults = policy_accuracy_weights();
  if (values == std::set<double>(defaults.begin(), defaults.end())) return;
  ValueList out;
  for (const double value : values) out.emplace_back(value);
  spec_.evaluation.emplace("weights", std::move(out));
}

void SpecReader::policies(const YamlNode& node) {
  if (const auto* scalar = std::get_if<YamlScalar>(&node.content)) {
    if (scalar->text == "same") return;
    problems_.report(node.mark, "policies is " + quoted(scalar->text, 60) +
                                    "; it takes `same` (each model guides itself) or a list of "
                                    "model names");
    return;
  }
  const YamlList* list = list_of(node, "policies", "[tiny, small], or `same`");
  if (list == nullptr) return;
  const std::vector<std::string> known = names_of(spec_.models);
  for (const YamlNode& item : *list) {
    const auto name = yaml_text(item);
    const std::string text = name ? *name : node_kind(item);
    if (!name || std::find(known.begin(), known.end(), text) == known.end()) {
      problems_.report(item.mark, unknown_name("model", text, " in policies", known));
    } else if (std::find(spec_.policies.begin(), spec_.policies.end(), text) ==
               spec_.policies.end()) {
      spec_.policies.push_back(text);
    } else {
      spec_.notes.push_back(problems_.place(item.mark) + ": policies: " + text +
                            " is listed twice and planned once");
    }
  }
}

void SpecReader::seeds(const YamlNode& node) {
  const YamlList* list = list_of(node, "seeds", "[0, 1, 2]");
  if (list == nullptr) return;
  const Field field{"a seed", FieldType::integer, std::nullopt, 0, highest_seed, {}, ""};
  spec_.seeds.clear();
  for (const YamlNode& item : *list) {
    const auto value = read_value(field, item, problems_);
    if (!value) continue;
    const auto seed = static_cast<std::uint64_t>(value->integer());
    if (std::find(spec_.seeds.begin(), spec_.seeds.end(), seed) == spec_.seeds.end()) {
      spec_.seeds.push_back(seed);
    } else {
      spec_.notes.push_back(problems_.place(item.mark) + ": seeds: " + std::to_string(seed) +
                            " is listed twice and planned once");
    }
  }
}

void SpecReader::section(const std::string& name, const YamlNode& node) {
  if (name == "experiment") experiment(node);
  if (name == "dataset") dataset(node);
  if (name == "models") models(node);
  if (name == "methods") rows(node, name, "method", catalog_.methods, spec_.methods);
  if (name == "decoding") rows(node, name, "decoder", catalog_.decoders, spec_.decoders);
  if (name == "evaluation") evaluation(node);
  if (name == "policies") policies(node);
  if (name == "seeds") seeds(node);
}

Result<ExperimentSpec> SpecReader::read(const YamlNode& root) {
  // In this order: `policies` names models.
  static const std::vector<std::string> sections = {
      "experiment", "dataset", "models", "methods", "decoding", "evaluation", "policies", "seeds"};
  static const std::set<std::string> needed = {"experiment", "dataset", "models", "methods"};
  const auto* map = std::get_if<YamlMap>(&root.content);
  if (map == nullptr) {
    problems_.report(root.mark, "a spec is a map with the sections " + joined_names(sections) +
                                    "; this is " + node_kind(root));
    return problems_.error();
  }
  for (const YamlEntry& entry : *map) {
    if (std::find(sections.begin(), sections.end(), entry.key) == sections.end()) {
      problems_.report(entry.key_mark, unknown_name("section", entry.key, "", sections));
    }
  }
  spec_.seeds = {0};
  for (const std::string& name : sections) {
    const auto entry =
        std::find_if(map->begin(), map->end(), [&](const YamlEntry& e) { return e.key == name; });
    if (entry != map->end()) {
      section(name, entry->value);
    } else if (needed.contains(name)) {
      problems_.report(root.mark, "the section `" + name + "` is missing");
    }
  }
  if (!problems_.clean()) return problems_.error();
  PREFGRID_TRY(check_pairings(spec_, catalog_));
  return std::move(spec_);
}

}  // namespace

Result<ExperimentSpec> parse_spec(const YamlNode& root, const std::string& file_name,
                                  const Catalog& catalog) {
  return SpecReader(file_name, catalog).read(root);
}

Error in_dataset_section(const ExperimentSpec& spec, Error error) {
  const YamlMark mark = spec.dataset_mark;
  error.message = spec.file_name + ":" + std::to_string(mark.line) + ":" +
                  std::to_string(mark.column) + ": dataset: " + error.message;
  return error;
}

}  // namespace prefgrid
