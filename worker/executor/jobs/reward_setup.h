// The reward of an evaluate job, put together from its inputs ("those of the reward" in
// docs/jobs.md): a linear head and what its features are made from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "worker/executor/jobs/job_environment.h"

namespace prefgrid {

struct JobMethod {
  const MethodRow* row = nullptr;
  ValueMap fields;  // defaults left out

  const Value& field(std::string_view name) const { return field_value(row->fields, fields, name); }
};

// Parameters `method`, `method_version` and `method_fields`, checked against the catalogue.
Result<JobMethod> job_method(const JobEnvironment& job);

struct JobReward {
  LinearHead head;                           // on unscaled features
  std::shared_ptr<const Features> features;  // of the dataset's pairs
  std::string backbone_input;                // its model folder; "" for bags of words

  bool reads_text() const { return std::holds_alternative<SparseRows>(features->chosen); }
};

// Of a method that has a reward, for one user.
Result<JobReward> job_reward(const JobEnvironment& job, const JobMethod& method,
                             const Dataset& dataset, std::uint32_t user);

// The place of a user among the seen ones, in the dataset's order: its row in lore's W.
std::int64_t seen_index(const Dataset& dataset, std::uint32_t user);

}  // namespace prefgrid
