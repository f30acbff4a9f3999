// From the core's grant to the Lease that an agent can run: the spec from the plan, the inputs'
// artefacts from the store. Owned by the loop.
#pragma once

#include <unordered_map>
#include <vector>

#include "common/messages.h"
#include "coordinator/core/effects.h"
#include "coordinator/loop/experiment_book.h"
#include "coordinator/store/store.h"

namespace prefgrid {

class LeaseResolver {
 public:
  LeaseResolver(const Store& store, const ExperimentBook& book) : store_(store), book_(book) {}

  // Errors: an input's result or a file from outside is not in the store, or damaged.
  Result<Lease> resolve(const LeaseGrant& grant);
  // About how much of a message the lease takes.
  static std::size_t bytes_of(const Lease& lease);

 private:
  Result<std::vector<ArtifactRef>> artifacts_of(const JobKey& maker);
  Result<std::vector<ArtifactRef>> outside_file(const ArtifactDigest& digest);

  const Store& store_;
  const ExperimentBook& book_;
  // Many jobs share an input; forgotten as a whole when full.
  std::unordered_map<JobKey, std::vector<ArtifactRef>> made_;
};

}  // namespace prefgrid
