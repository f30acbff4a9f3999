#include "experiments/catalog/catalog.h"

#include <algorithm>

#include "common/check.h"
#include "experiments/catalog/method_rows.h"
#include "experiments/catalog/model_fields.h"
#include "experiments/datasets/rows.h"

namespace prefgrid {
namespace {

template <class Row>
const Row* find_row(const std::vector<Row>& rows, std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

// "generate.args" -> "args" with prefix "generate.", else nothing.
std::optional<std::string_view> after_prefix(std::string_view kind, std::string_view prefix) {
  if (!kind.starts_with(prefix)) return std::nullopt;
  return kind.substr(prefix.size());
}

void append(std::vector<Field>& fields, const std::vector<Field>& more) {
  fields.insert(fields.end(), more.begin(), more.end());
}

// A kind's field as the evaluation section calls it.
Field renamed(const Catalog& rows, std::string_view kind, std::string_view field,
              std::string_view name, std::string_view help) {
  const KindRow* row = rows.kind(kind);
  PREFGRID_CHECK(row != nullptr, "no kind " + std::string(kind));
  const Field* found = find_field(row->fields, field);
  PREFGRID_CHECK(found != nullptr, std::string(kind) + " has no field " + std::string(field));
  Field out = *found;
  out.name = name;
  if (!help.empty()) out.help = help;
  return out;
}

std::vector<Field> evaluation_fields(const Catalog& rows) {
  Field policy_items =
      renamed(rows, "policy_accuracy", "items", "policy_items",
              "test pairs per user for policy accuracy, the first by hash; 0: none of it");
  Field generation_items =
      renamed(rows, "generate", "items", "generation_items",
              "test completions per user that are generated, the first by hash; 0: none of it");
  policy_items.minimum = 0;
  generation_items.minimum = 0;
  return {
      renamed(rows, "policy_accuracy", "max_prompt_tokens", "max_prompt_tokens", ""),
      renamed(rows, "generate", "max_new_tokens", "max_new_tokens", ""),
      policy_items,
      generation_items,
      renamed(rows, "policy_accuracy", "k", "k", ""),
      renamed(rows, "policy_accuracy", "scale_items", "scale_items", ""),
      renamed(rows, "policy_accuracy", "reward_scale", "reward_scale", ""),
      renamed(rows, "embed.bow", "dimensions", "bow_dimensions",
              "hash buckets of features_from: bow"),
      Field{"skip_small_users",
            FieldType::boolean,
            Value(false),
            0,
            0,
            {},
            "leave out, and say so, users with too few items instead of refusing the spec"},
  };
}

Catalog build() {
  Catalog rows;
  rows.methods = method_rows();
  rows.decoders = decoder_rows();
  rows.kinds = kind_rows();
  rows.kinds.insert(
      rows.kinds.begin(),
      KindRow{"pretrain", 1, "a language model, trained from scratch", pretrain_fields()});
  rows.datasets = dataset_rows();
  rows.evaluation = evaluation_fields(rows);
  return rows;
}

}  // namespace

const MethodRow* Catalog::method(std::string_view name) const {
  return find_row(methods, name);
}
const DecoderRow* Catalog::decoder(std::string_view name) const {
  return find_row(decoders, name);
}
const KindRow* Catalog::kind(std::string_view name) const {
  return find_row(kinds, name);
}
const DatasetRow* Catalog::dataset(std::string_view name) const {
  return find_row(datasets, name);
}

std::vector<KindVersion> Catalog::kind_versions() const {
  std::vector<KindVersion> all;
  for (const KindRow& row : kinds) {
    if (row.name != "generate") all.push_back({std::string(row.name), row.version});
  }
  for (const MethodRow& row : methods) {
    const std::string name(row.name);
    if (row.has_train) all.push_back({"train." + name, row.version});
    if (row.has_adapt) all.push_back({"adapt." + name, row.version});
  }
  // A change of what every decoder shares bumps "generate" and with it all of them.
  const KindRow* generate = kind("generate");
  const std::uint32_t shared = generate ? generate->version - 1 : 0;
  for (const DecoderRow& row : decoders) {
    all.push_back({"generate." + std::string(row.name), row.version + shared});
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::optional<std::uint32_t> Catalog::version_of(std::string_view job_kind) const {
  for (const KindVersion& known : kind_versions()) {
    if (known.kind == job_kind) return known.version;
  }
  return std::nullopt;
}

std::vector<Field> Catalog::fields_of(std::string_view job_kind) const {
  std::vector<Field> fields;
  if (const KindRow* row = kind(job_kind)) append(fields, row->fields);
  if (const auto name = after_prefix(job_kind, "generate.")) {
    const DecoderRow* row = decoder(*name);
    if (row == nullptr) return {};
    append(fields, kind("generate")->fields);
    append(fields, row->fields);
  }
  auto name = after_prefix(job_kind, "train.");
  if (!name) name = after_prefix(job_kind, "adapt.");
  if (const MethodRow* row = name ? method(*name) : nullptr) {
    append(fields, row->fields);
    if (row->trains_model) fields.push_back(max_prompt_tokens_field());
  }
  return fields;
}

const Catalog& catalog() {
  static const Catalog rows = build();  // constant after its first use
  return rows;
}

bool needs_given_items(const MethodRow& method) {
  return method.has_adapt || find_field(method.fields, "shots") != nullptr;
}

const Field* find_field(const std::vector<Field>& fields, std::string_view name) {
  return find_row(fields, name);
}

const Value& field_value(const std::vector<Field>& fields, const ValueMap& parameters,
                         std::string_view name) {
  const Field* field = find_field(fields, name);
  PREFGRID_CHECK(field != nullptr, "no field is called " + std::string(name));
  const auto given = parameters.find(std::string(name));
  if (given != parameters.end()) return given->second;
  PREFGRID_CHECK(field->default_value.has_value(), std::string(name) + " has no default");
  return *field->default_value;
}

}  // namespace prefgrid
