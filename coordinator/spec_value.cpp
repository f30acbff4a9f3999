// ExperimentSpec <-> Value, for the store.
#include <string>
#include <utility>

#include "coordinator/spec.h"

namespace prefgrid {
namespace {

ValueList row_values(const std::vector<ConfiguredRow>& rows) {
  ValueList out;
  for (const ConfiguredRow& row : rows) {
    out.emplace_back(ValueMap{{"name", row.name}, {"fields", row.fields}, {"label", row.label}});
  }
  return out;
}

Error damaged(const std::string& what) {
  return invalid_input("a stored experiment is damaged: " + what);
}

template <class T>
Result<T> member(const Value& map, const std::string& name) {
  const auto* fields = std::get_if<ValueMap>(&map);
  if (fields == nullptr) return damaged("a map is missing around " + name);
  const auto found = fields->find(name);
  if (found == fields->end()) return damaged(name + " is missing");
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) return damaged(name + " has the wrong type");
  return *value;
}

Result<std::vector<ConfiguredRow>> rows_from(const Value& map, const std::string& name) {
  PREFGRID_ASSIGN(const ValueList list, member<ValueList>(map, name));
  std::vector<ConfiguredRow> out;
  for (const Value& item : list) {
    ConfiguredRow row;
    PREFGRID_ASSIGN(row.name, member<std::string>(item, "name"));
    PREFGRID_ASSIGN(row.fields, member<ValueMap>(item, "fields"));
    PREFGRID_ASSIGN(row.label, member<std::string>(item, "label"));
    out.push_back(std::move(row));
  }
  return out;
}

Result<void> read_lists(const Value& value, ExperimentSpec& spec) {
  PREFGRID_ASSIGN(const ValueList models, member<ValueList>(value, "models"));
  for (const Value& item : models) {
    ModelSpec model;
    PREFGRID_ASSIGN(model.name, member<std::string>(item, "name"));
    PREFGRID_ASSIGN(model.fields, member<ValueMap>(item, "fields"));
    spec.models.push_back(std::move(model));
  }
  PREFGRID_ASSIGN(const ValueList policies, member<ValueList>(value, "policies"));
  for (const Value& item : policies) {
    const auto* name = std::get_if<std::string>(&item);
    if (name == nullptr) return damaged("a policy is no text");
    spec.policies.push_back(*name);
  }
  PREFGRID_ASSIGN(const ValueList seeds, member<ValueList>(value, "seeds"));
  for (const Value& item : seeds) {
    const auto* seed = std::get_if<std::int64_t>(&item);
    if (seed == nullptr || *seed < 0) return damaged("a seed is no number from 0");
    spec.seeds.push_back(static_cast<std::uint64_t>(*seed));
  }
  if (spec.models.empty() || spec.methods.empty() || spec.seeds.empty()) {
    return damaged("models, methods or seeds are empty");
  }
  return {};
}

}  // namespace

Value to_value(const ExperimentSpec& spec) {
  ValueList models;
  for (const ModelSpec& model : spec.models) {
    models.emplace_back(ValueMap{{"name", model.name}, {"fields", model.fields}});
  }
  ValueList seeds;
  for (const std::uint64_t seed : spec.seeds) seeds.emplace_back(static_cast<std::int64_t>(seed));
  return ValueMap{{"file_name", spec.file_name},
                  {"experiment", spec.experiment},
                  {"dataset", spec.dataset},
                  {"models", std::move(models)},
                  {"methods", row_values(spec.methods)},
                  {"decoders", row_values(spec.decoders)},
                  {"evaluation", spec.evaluation},
                  {"policies", ValueList(spec.policies.begin(), spec.policies.end())},
                  {"seeds", std::move(seeds)}};
}

Result<ExperimentSpec> spec_from_value(const Value& value) {
  ExperimentSpec spec;
  PREFGRID_ASSIGN(spec.file_name, member<std::string>(value, "file_name"));
  PREFGRID_ASSIGN(spec.experiment, member<std::string>(value, "experiment"));
  PREFGRID_ASSIGN(spec.dataset, member<ValueMap>(value, "dataset"));
  PREFGRID_ASSIGN(spec.methods, rows_from(value, "methods"));
  PREFGRID_ASSIGN(spec.decoders, rows_from(value, "decoders"));
  PREFGRID_ASSIGN(spec.evaluation, member<ValueMap>(value, "evaluation"));
  PREFGRID_TRY(read_lists(value, spec));
  return spec;
}

}  // namespace prefgrid
