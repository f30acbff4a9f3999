// A folder of artefacts by content, shared by all agents of a host:
//
//   objects/ab/abcd…   a file named by its SHA-256, read-only, complete: it is renamed into place
//   partial/…          files on their way in; leftovers of dead agents are older than a day
//   agents/…           each agent's own folder (job_folders.h)
//
// An object is digested once by every process that uses it; a damaged one is removed and counts as
// absent. Beyond the size cap the least recently used objects go (modification time = last use); an
// object that another agent uses is safe, for that agent holds a hard link. Downsides: the cap
// counts objects, not what jobs write; two agents may fetch the same object at the same time.
// Single-threaded use; several processes at once are fine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "common/ids.h"
#include "common/result.h"

namespace prefgrid {

class ArtifactCache {
 public:
  static Result<ArtifactCache> open(const std::filesystem::path& folder, std::uint64_t max_bytes);

  // The object, if it is there whole. Counts as a use.
  std::optional<std::filesystem::path> find(const ArtifactDigest& digest, std::uint64_t size);
  // Takes over a file of the same file system whose content the caller has just digested.
  Result<std::filesystem::path> adopt(const std::filesystem::path& file,
                                      const ArtifactDigest& digest, std::uint64_t size);
  // Refuses content that has another digest.
  Result<std::filesystem::path> insert(std::string_view content, const ArtifactDigest& digest);
  // A fresh name in partial/.
  std::filesystem::path partial_file();

  // Removes what was used least recently until the cap holds; never one of `keep`.
  void shrink(const std::set<ArtifactDigest>& keep);
  // Removes everything but `keep`: the disk is full.
  void give_way(const std::set<ArtifactDigest>& keep);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path object_path(const ArtifactDigest& digest) const;

 private:
  ArtifactCache(std::filesystem::path folder, std::uint64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  void shrink_to(std::uint64_t goal, const std::set<ArtifactDigest>& keep);

  std::filesystem::path folder_;
  std::uint64_t max_bytes_ = 0;
  std::uint64_t bytes_ = 0;  // of objects, as far as this process knows
  std::uint64_t next_partial_ = 0;
  std::set<ArtifactDigest> verified_;
};

}  // namespace prefgrid
