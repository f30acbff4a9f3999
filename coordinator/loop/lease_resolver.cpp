#include "coordinator/loop/lease_resolver.h"

#include "common/limits.h"

namespace prefgrid {
namespace {

constexpr std::size_t remembered_results = 1'024;
constexpr std::size_t lease_overhead_bytes = 1'024;

}  // namespace

Result<Lease> LeaseResolver::resolve(const LeaseGrant& grant) {
  const PlannedJob& job = book_.job(grant.experiment, grant.plan_index);
  Lease lease{grant.id, job.spec, {}, grant.affinity};
  for (const auto& [name, input] : job.spec.inputs) {
    const auto* const maker = std::get_if<JobKey>(&input);
    auto artifacts =
        maker != nullptr ? artifacts_of(*maker) : outside_file(std::get<ArtifactDigest>(input));
    if (!artifacts.ok()) {
      return Error{artifacts.error().code, "input " + name + ": " + artifacts.error().message};
    }
    lease.inputs.push_back({name, input, *std::move(artifacts)});
  }
  return lease;
}

Result<std::vector<ArtifactRef>> LeaseResolver::artifacts_of(const JobKey& maker) {
  if (const auto found = made_.find(maker); found != made_.end()) return found->second;
  PREFGRID_ASSIGN(auto stored, store_.result(maker));
  if (!stored) {
    return Error{ErrorCode::not_found, "the store has no result of job " + maker.hex()};
  }
  if (made_.size() >= remembered_results) made_.clear();
  return made_.emplace(maker, std::move(stored->result.artifacts)).first->second;
}

Result<std::vector<ArtifactRef>> LeaseResolver::outside_file(const ArtifactDigest& digest) {
  PREFGRID_ASSIGN(const auto size, store_.artifact_size(digest));
  if (!size) {
    return Error{ErrorCode::not_found, "the store has no file of digest " + digest.hex()};
  }
  ArtifactRef file{"", digest, *size, std::nullopt};
  if (*size <= limits::inline_artifact_bytes) {
    PREFGRID_ASSIGN(file.inline_data, store_.artifact(digest, limits::inline_artifact_bytes));
  }
  return std::vector<ArtifactRef>{std::move(file)};
}

std::size_t LeaseResolver::bytes_of(const Lease& lease) {
  std::size_t bytes = lease_overhead_bytes + lease.spec.parameters.size() * 64;
  for (const ResolvedInput& input : lease.inputs) {
    for (const ArtifactRef& artifact : input.artifacts) {
      bytes +=
          128 + artifact.name.size() + (artifact.inline_data ? artifact.inline_data->size() : 0);
    }
  }
  return bytes;
}

}  // namespace prefgrid
