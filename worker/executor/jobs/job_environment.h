// What a job's function works with: its checked parameters, its inputs, and the loaders that keep
// datasets and models resident.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/job.h"
#include "common/result.h"
#include "experiments/catalog/catalog.h"
#include "experiments/datasets/dataset.h"
#include "experiments/methods/features.h"
#include "worker/executor/jobs/resident.h"
#include "worker/executor/run_job.h"
#include "worker/nn/tokenizer.h"
#include "worker/nn/transformer.h"

namespace prefgrid {

struct LoadedModel {
  std::string id;  // of the input that it came from: equal ids are equal weights
  Transformer transformer;
  Tokenizer tokenizer;
};

class JobEnvironment {
 public:
  JobEnvironment(const JobContext& context, ResidentModels& resident);

  const JobContext& context() const { return context_; }
  ResidentModels& resident() const { return resident_; }
  const std::filesystem::path& output_dir() const { return context_.output_dir; }

  // Parameters of the kind's own row, by their catalogue name (their types are checked before).
  const Value& field(std::string_view name) const;
  std::int64_t integer(std::string_view name) const { return field(name).integer(); }
  double real(std::string_view name) const { return field(name).real(); }
  const std::string& text(std::string_view name) const { return field(name).text(); }
  // Those that no row declares ("user", "method", "weights"): nullptr where absent.
  const Value* extra(std::string_view name) const;
  std::uint64_t seed() const { return context_.spec.seed.value_or(0); }

  // Errors name what is missing.
  Result<const JobInput*> input(std::string_view name) const;
  bool has_input(std::string_view name) const;
  Result<std::shared_ptr<const Dataset>> dataset() const;
  Result<std::string> dataset_id() const;
  // The model folder of the input of that name.
  Result<std::shared_ptr<const LoadedModel>> model(std::string_view input_name) const;
  Result<std::shared_ptr<const Features>> features(std::string_view input_name) const;
  // Index into Dataset::users of parameter `user`.
  Result<std::uint32_t> user(const Dataset& dataset) const;

 private:
  const JobContext& context_;
  ResidentModels& resident_;
  std::vector<Field> fields_;
};

// Every parameter is a declared field or one of `extras`, and of the right type and range; the
// version is this build's. Errors say which and what to do.
Result<void> check_spec(const JobSpec& spec);
Result<void> check_fields(const std::vector<Field>& fields, const ValueMap& values,
                          std::string_view where);

}  // namespace prefgrid
