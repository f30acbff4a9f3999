// What can stand in a spec, as plain tables: one row a method, a decoder, a job kind, a dataset.
// Free of torch and linked by both sides: the planner refuses and explains with it, the executor
// takes its defaults from it. A new method is one row here and one file in experiments/methods.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/messages.h"
#include "common/value.h"
#include "experiments/catalog/field.h"

namespace prefgrid {

// Where a method's frozen features come from decides which jobs it needs before `train`.
struct MethodRow {
  std::string_view name;
  std::uint32_t version = 1;  // of its train, adapt and reward formulas together
  std::string_view summary;
  std::string_view source;      // paper or code that the formula follows
  std::vector<Field> fields;    // hyper-parameters; a list in the spec spans a grid
  bool reads_features = false;  // needs an `embed` job, by its features_from field
  bool has_train = false;       // shared parameters
  bool has_adapt = false;       // parameters of an unseen user, fitted on its given set
  bool trains_model = false;    // its train artefact is a model folder (a reward backbone)
  bool has_reward = false;      // r_u exists: rm_accuracy, guided decoding
  bool train_reads_seed = false;
  std::vector<std::string_view> decoders;  // allowed ones
};

struct DecoderRow {
  std::string_view name;
  std::uint32_t version = 1;
  std::string_view summary;
  std::vector<Field> fields;
  bool needs_reward = false;
  bool reads_seed = false;
};

// Kinds without a method or decoder in their name ("pretrain", "embed.lm", "embed.bow",
// "rm_accuracy", "policy_accuracy"), and "generate": no kind, but the fields that every
// generate.<decoder> reads besides the decoder's own.
struct KindRow {
  std::string_view name;
  std::uint32_t version = 1;
  std::string_view summary;
  std::vector<Field> fields;
};

struct DatasetRow {
  std::string_view name;
  std::string_view summary;
  std::vector<Field> fields;
};

struct Catalog {
  std::vector<MethodRow> methods;
  std::vector<DecoderRow> decoders;
  std::vector<KindRow> kinds;
  std::vector<DatasetRow> datasets;
  // What a spec's evaluation section may hold: fields of "policy_accuracy", "generate" and
  // "embed.bow" under the section's own names ("policy_items" is `items` of policy_accuracy).
  // `weights`, a list of reals, stands beside them: policy_accuracy_weights() by default.
  std::vector<Field> evaluation;

  const MethodRow* method(std::string_view name) const;
  const DecoderRow* decoder(std::string_view name) const;
  const KindRow* kind(std::string_view name) const;
  const DatasetRow* dataset(std::string_view name) const;

  // Every job kind with its version: "train.lore", "generate.args", ... Sorted by name.
  std::vector<KindVersion> kind_versions() const;
  // The version of one of these; nullopt: there is no such kind.
  std::optional<std::uint32_t> version_of(std::string_view job_kind) const;
  // The fields that a job of this kind may have among its parameters: of "generate.args" those of
  // "generate" and of the decoder, of "train.lore" the method's. Empty for an unknown kind.
  std::vector<Field> fields_of(std::string_view job_kind) const;
};

// The one catalogue of this build; a plain function, no global state.
const Catalog& catalog();

// Whether a user's given set must not be empty: the method fits something on it or shows it.
bool needs_given_items(const MethodRow& method);

const Field* find_field(const std::vector<Field>& fields, std::string_view name);

// The field's value in `parameters`, else its default. Aborts on an undeclared name: a bug.
const Value& field_value(const std::vector<Field>& fields, const ValueMap& parameters,
                         std::string_view name);

}  // namespace prefgrid
