#include "worker/executor/jobs/job_environment.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/files.h"
#include "common/text.h"

namespace prefgrid {
namespace {

// Parameters beside the catalogue's fields, by docs/jobs.md.
constexpr std::array<std::string_view, 5> extra_parameters = {"method", "method_fields",
                                                              "method_version", "user", "weights"};
constexpr std::size_t dataset_bytes = 4ull << 30;

std::uint64_t text_bytes(const Dataset& dataset) {
  std::uint64_t bytes = 0;
  for (const PairItem& item : dataset.pairs) {
    bytes += item.prompt.size() + item.chosen.size() + item.rejected.size() + 256;
  }
  for (const CompletionItem& item : dataset.completions) {
    bytes += item.prompt.size() + item.completion.size() + 192;
  }
  for (const CorpusItem& item : dataset.corpus) {
    bytes += item.prompt.size() + item.completion.size() + 192;
  }
  return bytes;
}

std::uint64_t rows_bytes(const FeatureRows& rows) {
  if (const auto* sparse = std::get_if<SparseRows>(&rows)) {
    return sparse->columns.size() * 8 + sparse->offsets.size() * 8;
  }
  return static_cast<std::uint64_t>(std::get<at::Tensor>(rows).numel()) * sizeof(float);
}

Result<LoadedModel> load_model(const JobInput& input) {
  PREFGRID_ASSIGN(Transformer transformer, Transformer::load(input.path));
  PREFGRID_ASSIGN(Tokenizer tokenizer, Tokenizer::load(input.path / "tokenizer.json"));
  // A candidate without bytes could be neither shown nor scored.
  if (tokenizer.vocab_size() != transformer.config().vocab_size) {
    return invalid_input(input.path.string() + ": the tokenizer has " +
                         std::to_string(tokenizer.vocab_size()) + " tokens, the model " +
                         std::to_string(transformer.config().vocab_size) +
                         ": padded vocabularies are not supported");
  }
  return LoadedModel{input.id, std::move(transformer), std::move(tokenizer)};
}

}  // namespace

Result<void> check_fields(const std::vector<Field>& fields, const ValueMap& values,
                          std::string_view where) {
  for (const auto& [name, value] : values) {
    const Field* field = find_field(fields, name);
    const std::string place = std::string(where) + ": parameter " + quoted(name);
    if (field == nullptr) {
      return invalid_input(place +
                           " is unknown here: coordinator and worker are of different "
                           "versions");
    }
    if (!has_type(value, field->type)) return invalid_input(place + " is of the wrong type");
    if (!in_range(value, *field)) return invalid_input(place + " is out of its range");
  }
  return {};
}

Result<void> check_spec(const JobSpec& spec) {
  const auto version = catalog().version_of(spec.kind);
  if (!version) {
    return invalid_input("job kind " + quoted(spec.kind) +
                         " is unknown to this executor: its "
                         "worker is older than the coordinator, or of another build");
  }
  if (*version != spec.kind_version) {
    return Error{ErrorCode::conflict,
                 "job kind " + spec.kind + " version " + std::to_string(spec.kind_version) +
                     " was asked for, this executor has version " + std::to_string(*version)};
  }
  ValueMap declared = spec.parameters;
  for (const std::string_view name : extra_parameters) declared.erase(std::string(name));
  return check_fields(catalog().fields_of(spec.kind), declared, spec.kind);
}

JobEnvironment::JobEnvironment(const JobContext& context, ResidentModels& resident)
    : context_(context), resident_(resident), fields_(catalog().fields_of(context.spec.kind)) {}

const Value& JobEnvironment::field(std::string_view name) const {
  return field_value(fields_, context_.spec.parameters, name);
}

const Value* JobEnvironment::extra(std::string_view name) const {
  const auto found = context_.spec.parameters.find(std::string(name));
  return found == context_.spec.parameters.end() ? nullptr : &found->second;
}

bool JobEnvironment::has_input(std::string_view name) const {
  return context_.inputs.contains(std::string(name));
}

Result<const JobInput*> JobEnvironment::input(std::string_view name) const {
  const auto found = context_.inputs.find(std::string(name));
  if (found == context_.inputs.end()) {
    return invalid_input(context_.spec.kind + ": input " + quoted(name) + " is missing");
  }
  return &found->second;
}

Result<std::string> JobEnvironment::dataset_id() const {
  PREFGRID_ASSIGN(const JobInput* file, input("dataset"));
  return file->id;
}

Result<std::shared_ptr<const Dataset>> JobEnvironment::dataset() const {
  PREFGRID_ASSIGN(const JobInput* file, input("dataset"));
  const auto load = [&]() -> Result<Dataset> {
    PREFGRID_ASSIGN(const std::string text, read_file(file->path, dataset_bytes));
    return read_dataset(text, file->path.filename().string());
  };
  return resident_.get<Dataset>("dataset/" + file->id, load, text_bytes);
}

Result<std::shared_ptr<const LoadedModel>> JobEnvironment::model(std::string_view name) const {
  PREFGRID_ASSIGN(const JobInput* folder, input(name));
  const auto bytes_of = [](const LoadedModel& model) {
    std::uint64_t bytes = 1 << 20;
    for (const auto& [parameter, tensor] : model.transformer.parameters()) {
      bytes += static_cast<std::uint64_t>(tensor.numel()) * sizeof(float);
    }
    return bytes;
  };
  return resident_.get<LoadedModel>(
      "model/" + folder->id, [&] { return load_model(*folder); }, bytes_of);
}

Result<std::shared_ptr<const Features>> JobEnvironment::features(std::string_view name) const {
  PREFGRID_ASSIGN(const JobInput* folder, input(name));
  PREFGRID_ASSIGN(const auto data, dataset());
  const auto load = [&] {
    return load_features(folder->path / "features.safetensors",
                         static_cast<std::int64_t>(data->pairs.size()));
  };
  const auto bytes_of = [](const Features& features) {
    return rows_bytes(features.chosen) + rows_bytes(features.rejected);
  };
  return resident_.get<Features>("features/" + folder->id, load, bytes_of);
}

Result<std::uint32_t> JobEnvironment::user(const Dataset& dataset) const {
  const Value* name = extra("user");
  if (name == nullptr || !std::holds_alternative<std::string>(*name)) {
    return invalid_input(context_.spec.kind + ": parameter \"user\" is missing or no text");
  }
  for (std::uint32_t i = 0; i < dataset.users.size(); ++i) {
    if (dataset.users[i].id == name->text()) return i;
  }
  return invalid_input(context_.spec.kind + ": user " + quoted(name->text()) +
                       " is not in the dataset");
}

}  // namespace prefgrid
