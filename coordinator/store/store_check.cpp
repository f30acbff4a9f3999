// A full reading of the store, for `prefgrid store check`.
#include <map>

#include "common/sha256.h"
#include "coordinator/store/keys.h"
#include "coordinator/store/store.h"

namespace prefgrid {
namespace {

constexpr std::size_t piece_bytes = 1 << 20;

// Digests an artefact of any size in pieces; "" if it is whole.
Result<std::string> artifact_problem(const Store& store, const ArtifactDigest& digest,
                                     std::uint64_t size) {
  Sha256 sum;
  for (std::uint64_t offset = 0; offset < size;) {
    const auto piece = store.read_artifact(digest, offset, piece_bytes);
    if (!piece.ok()) return piece.error().message;
    if (piece->empty()) return "the artefact " + digest.hex() + " ends early";
    sum.update(*piece);
    offset += piece->size();
  }
  if (sum.finish() == digest.bytes) return std::string();
  return "the artefact " + digest.hex() + " has another digest: its content is damaged";
}

}  // namespace

Result<std::vector<std::string>> Store::check() const {
  std::vector<std::string> problems = findings_;
  const auto note = [&problems](const Result<void>& outcome) {
    if (!outcome.ok()) problems.push_back(outcome.error().message);
  };
  {
    const std::shared_lock open(open_mutex_);
    if (database_) note(database_->verify());
  }
  note(check_history());
  const auto specs = experiments();
  if (!specs.ok()) problems.push_back(specs.error().message);
  note(each_job([](const JobFact&) { return Result<bool>(true); }));
  note(each_event(0, [](const StoredEvent&) { return Result<bool>(true); }));

  std::map<ArtifactDigest, std::uint64_t> artifacts;
  note(scan(Family::artifacts, "", [&](std::string_view key, std::string_view value) {
    const auto digest = id_of_key<ArtifactDigest>(key);
    const auto place = decode_place(value);
    if (!digest || !place.ok()) {
      problems.push_back("an artefact's record is damaged");
    } else {
      artifacts.emplace(*digest, place->size);
    }
    return Result<bool>(true);
  }));
  for (const auto& [digest, size] : artifacts) {
    PREFGRID_ASSIGN(const std::string problem, artifact_problem(*this, digest, size));
    if (!problem.empty()) problems.push_back(problem);
  }
  note(each_result([&](const ResultFact& fact) {
    for (const ArtifactRef& artifact : fact.result.artifacts) {
      if (artifact.inline_data) {
        if (digest_of(*artifact.inline_data) == artifact.digest) continue;
        problems.push_back("job " + fact.job.hex() + ": " + artifact.name + " is damaged");
        continue;
      }
      if (artifacts.contains(artifact.digest)) continue;
      problems.push_back("job " + fact.job.hex() + ": its artefact " + artifact.name +
                         " is not in the store");
    }
    return Result<bool>(true);
  }));
  return problems;
}

}  // namespace prefgrid
