#include "coordinator/grid.h"

#include <algorithm>
#include <numeric>

#include "common/check.h"

namespace prefgrid {
namespace {

constexpr std::string_view feature_method = "global_bt";

Result<const MethodRow*> method_row(const ExperimentSpec& spec, const Catalog& catalog,
                                    const ConfiguredRow& row) {
  const MethodRow* method = catalog.method(row.name);
  if (method == nullptr) {
    return refused_at(spec, row.mark, "this version of prefgrid has no method " + row.name);
  }
  return method;
}

Features features_of(const MethodRow& method, const ConfiguredRow& row) {
  if (!method.reads_features) return Features::none;
  const std::string& from = field_value(method.fields, row.fields, "features_from").text();
  if (from == "bow") return Features::bow;
  PREFGRID_CHECK(from == feature_method, "no features come from " + from);  // see check_fields
  return Features::global_bt;
}

// A parsed spec passes by construction; one from the store may come from another version.
Result<void> check_fields(const ExperimentSpec& spec, YamlMark mark, const std::string& owner,
                          const std::vector<Field>& fields, const ValueMap& values) {
  for (const auto& [name, value] : values) {
    const Field* field = find_field(fields, name);
    const bool fits =
        field != nullptr &&
        ((field->type == FieldType::boolean && std::holds_alternative<bool>(value)) ||
         (field->type == FieldType::integer && std::holds_alternative<std::int64_t>(value)) ||
         (field->type == FieldType::real && std::holds_alternative<double>(value)) ||
         (field->type == FieldType::text && std::holds_alternative<std::string>(value) &&
          (field->choices.empty() || std::find(field->choices.begin(), field->choices.end(),
                                               value.text()) != field->choices.end())));
    if (!fits) {
      return refused_at(spec, mark,
                        owner + ": this version of prefgrid does not know the field " + name +
                            " with such a value");
    }
  }
  return {};
}

Result<void> check_all_fields(const ExperimentSpec& spec, const Catalog& catalog) {
  for (const ModelSpec& model : spec.models) {
    PREFGRID_TRY(check_fields(spec, model.mark, "model " + model.name,
                              catalog.kind("pretrain")->fields, model.fields));
  }
  for (const ConfiguredRow& row : spec.methods) {
    PREFGRID_ASSIGN(const MethodRow* method, method_row(spec, catalog, row));
    PREFGRID_TRY(check_fields(spec, row.mark, row.name, method->fields, row.fields));
  }
  for (const ConfiguredRow& row : spec.decoders) {
    const DecoderRow* decoder = catalog.decoder(row.name);
    if (decoder == nullptr) {
      return refused_at(spec, row.mark, "this version of prefgrid has no decoder " + row.name);
    }
    PREFGRID_TRY(check_fields(spec, row.mark, row.name, decoder->fields, row.fields));
  }
  ValueMap evaluation = spec.evaluation;
  if (const auto weights = evaluation.extract("weights");
      !weights.empty() && !std::holds_alternative<ValueList>(weights.mapped())) {
    return refused_at(spec, {}, "evaluation: weights is no list");
  }
  return check_fields(spec, {}, "evaluation", catalog.evaluation, evaluation);
}

std::int64_t model_number(const Catalog& catalog, const ModelSpec& model, std::string_view name) {
  return field_value(catalog.kind("pretrain")->fields, model.fields, name).integer();
}

std::vector<std::size_t> listed_policies(const ExperimentSpec& spec,
                                         const std::vector<std::size_t>& models) {
  std::vector<std::size_t> out;
  for (const std::size_t model : models) {
    if (spec.policies.empty() || std::find(spec.policies.begin(), spec.policies.end(),
                                           spec.models[model].name) != spec.policies.end()) {
      out.push_back(model);
    }
  }
  return out;
}

// A reward is judged at every token of the policy, so both must cut text into the same tokens.
Result<void> check_vocabularies(const ExperimentSpec& spec, const Catalog& catalog,
                                const GridPoint& point) {
  if (!point.backbone) return {};
  const ModelSpec& backbone = spec.models[*point.backbone];
  const std::int64_t own = model_number(catalog, backbone, "vocab_size");
  for (const std::size_t policy : point.policies) {
    const std::int64_t other = model_number(catalog, spec.models[policy], "vocab_size");
    if (own == other) continue;
    return refused_at(spec, spec.models[policy].mark,
                      "model " + spec.models[policy].name + " (vocab_size " +
                          std::to_string(other) + ") cannot be guided by a reward on model " +
                          backbone.name + " (vocab_size " + std::to_string(own) +
                          "): give both one vocab_size, or `policies: same`");
  }
  return {};
}

Result<void> check_contexts(const ExperimentSpec& spec, const Catalog& catalog) {
  const std::int64_t prompt =
      field_value(catalog.evaluation, spec.evaluation, "max_prompt_tokens").integer();
  const std::int64_t generated =
      field_value(catalog.evaluation, spec.evaluation, "max_new_tokens").integer();
  for (const ModelSpec& model : spec.models) {
    const std::int64_t context = model_number(catalog, model, "max_tokens");
    if (prompt + generated < context) continue;  // one more for the begin token
    return refused_at(spec, model.mark,
                      "model " + model.name + " has a context of max_tokens " +
                          std::to_string(context) + ", too short for max_prompt_tokens " +
                          std::to_string(prompt) + " and max_new_tokens " +
                          std::to_string(generated) + " of the evaluation");
  }
  return {};
}

bool allows(const MethodRow& method, const std::string& decoder) {
  return std::find(method.decoders.begin(), method.decoders.end(), decoder) !=
         method.decoders.end();
}

bool reads_seed(const MethodRow& method, Features features, const Catalog& catalog) {
  if (method.has_train && method.train_reads_seed) return true;
  return features == Features::global_bt && catalog.method(feature_method)->train_reads_seed;
}

}  // namespace

std::vector<std::size_t> models_by_name(const ExperimentSpec& spec) {
  std::vector<std::size_t> order(spec.models.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return spec.models[a].name < spec.models[b].name;
  });
  return order;
}

Error refused_at(const ExperimentSpec& spec, YamlMark mark, const std::string& what) {
  return invalid_input(spec.file_name + ":" + std::to_string(mark.line) + ":" +
                       std::to_string(mark.column) + ": " + what);
}

bool has_policy_accuracy(const ExperimentSpec& spec, const Catalog& catalog) {
  return field_value(catalog.evaluation, spec.evaluation, "policy_items").integer() > 0;
}

bool has_generation(const ExperimentSpec& spec, const Catalog& catalog) {
  return field_value(catalog.evaluation, spec.evaluation, "generation_items").integer() > 0;
}

Result<std::optional<std::size_t>> feature_source(const ExperimentSpec& spec, YamlMark mark) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < spec.methods.size(); ++i) {
    if (spec.methods[i].name != feature_method) continue;
    if (found) {
      return refused_at(spec, mark,
                        "features_from: global_bt is ambiguous, for global_bt is listed with "
                        "several settings (lines " +
                            std::to_string(spec.methods[*found].mark.line) + " and " +
                            std::to_string(spec.methods[i].mark.line) +
                            "): keep one of them here, and put the others in another spec (equal "
                            "jobs are shared)");
    }
    found = i;
  }
  return found;
}

Result<void> check_pairings(const ExperimentSpec& spec, const Catalog& catalog) {
  if (!has_generation(spec, catalog)) return {};
  if (spec.decoders.empty()) {
    return refused_at(spec, {},
                      "the section `decoding` is missing; list decoders, such as [greedy, args], "
                      "or set generation_items: 0 in `evaluation`");
  }
  std::vector<bool> used(spec.decoders.size(), false);
  for (const ConfiguredRow& row : spec.methods) {
    PREFGRID_ASSIGN(const MethodRow* method, method_row(spec, catalog, row));
    bool paired = false;
    for (std::size_t i = 0; i < spec.decoders.size(); ++i) {
      if (!allows(*method, spec.decoders[i].name)) continue;
      used[i] = paired = true;
    }
    if (paired) continue;
    std::string allowed;
    for (const std::string_view name : method->decoders) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(name);
    }
    return refused_at(spec, row.mark,
                      row.name +
                          " goes with none of the listed decoders; add to `decoding` one "
                          "of: " +
                          allowed);
  }
  for (std::size_t i = 0; i < spec.decoders.size(); ++i) {
    if (used[i]) continue;
    std::string users;
    for (const MethodRow& method : catalog.methods) {
      if (allows(method, spec.decoders[i].name)) {
        users += (users.empty() ? "" : ", ") + std::string(method.name);
      }
    }
    return refused_at(spec, spec.decoders[i].mark,
                      "no listed method goes with " + spec.decoders[i].name +
                          "; leave it out, or list one of: " + users);
  }
  return {};
}

Result<std::vector<GridPoint>> expand_grid(const ExperimentSpec& spec, const Catalog& catalog) {
  PREFGRID_TRY(check_all_fields(spec, catalog));
  PREFGRID_TRY(check_pairings(spec, catalog));
  PREFGRID_TRY(check_contexts(spec, catalog));
  const std::vector<std::size_t> models = models_by_name(spec);
  const std::vector<std::size_t> policies = listed_policies(spec, models);
  std::vector<GridPoint> points;
  for (std::size_t m = 0; m < spec.methods.size(); ++m) {
    PREFGRID_ASSIGN(const MethodRow* method, method_row(spec, catalog, spec.methods[m]));
    GridPoint point;
    point.method = m;
    point.features = features_of(*method, spec.methods[m]);
    if (point.features == Features::global_bt) {
      PREFGRID_TRY(feature_source(spec, spec.methods[m].mark));
    }
    for (std::size_t d = 0; d < spec.decoders.size(); ++d) {
      if (allows(*method, spec.decoders[d].name)) point.decoders.push_back(d);
    }
    std::vector<std::optional<std::uint64_t>> seeds = {std::nullopt};
    if (reads_seed(*method, point.features, catalog)) {
      seeds.assign(spec.seeds.begin(), spec.seeds.end());
    }
    const bool on_model = method->trains_model || point.features == Features::global_bt;
    for (const std::size_t model : on_model ? models : std::vector<std::size_t>{0}) {
      if (on_model) point.backbone = model;
      const bool itself = on_model && spec.policies.empty();
      point.policies = itself ? std::vector<std::size_t>{model} : policies;
      PREFGRID_TRY(check_vocabularies(spec, catalog, point));
      for (const auto& seed : seeds) {
        point.seed = seed;
        points.push_back(point);
      }
    }
  }
  return points;
}

}  // namespace prefgrid
