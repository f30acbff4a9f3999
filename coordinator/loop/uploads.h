// Artefacts on their way in: chunks in order, digested as they come, durable before `complete`.
// An upload goes on where it stopped, also after a restart if it is large. No sockets here.
// Owned by the bulk server's thread.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "common/files.h"
#include "common/messages.h"
#include "common/sha256.h"
#include "coordinator/store/store.h"

namespace prefgrid {

inline constexpr std::size_t concurrent_uploads = 64;
inline constexpr std::uint64_t upload_in_memory_bytes = 1 << 20;  // larger ones grow in a file
inline constexpr std::uint64_t artifact_bytes = 1ull << 40;

class Uploads {
 public:
  explicit Uploads(Store& store);

  // The answer to one chunk. nullopt: the disk is full; the peer asks again until it is not.
  std::optional<BulkPutAck> put(const BulkPut& chunk);

 private:
  struct Upload {
    std::uint64_t size = 0;
    std::uint64_t received = 0;
    std::uint64_t last_use = 0;
    Sha256 sum;
    std::string content;  // in memory
    Descriptor file;      // or in a file
  };
  Result<Upload*> find_or_begin(const BulkPut& chunk);
  Result<void> resume_file(const ArtifactDigest& digest, Upload& upload);
  Result<void> append(const BulkPut& chunk, Upload& upload);
  Result<void> finish(const ArtifactDigest& digest, Upload& upload);
  void make_room();
  std::filesystem::path part_path(const ArtifactDigest& digest) const;

  Store& store_;
  std::map<ArtifactDigest, Upload> uploads_;
  std::uint64_t uses_ = 0;
};

}  // namespace prefgrid
