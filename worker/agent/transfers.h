// One artefact on its way over the bulk endpoint: what to say next, and what to make of an answer.
// Time comes in, messages go out; the only I/O is on the artefact's own file. Both survive lost
// messages, repeated ones and a coordinator that starts again: without progress they ask again from
// where they are, less and less often.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "common/clock.h"
#include "common/files.h"
#include "common/messages.h"
#include "common/result.h"
#include "common/sha256.h"
#include "worker/agent/agent_limits.h"

namespace prefgrid {

// When to ask again.
class StallTimer {
 public:
  void progressed(MonotonicMs now) {
    patience_ms_ = limits::stall_first_ms;
    due_ = now + patience_ms_;
  }
  void asked_again(MonotonicMs now) {
    patience_ms_ = std::min(2 * patience_ms_, limits::stall_max_ms);
    due_ = now + patience_ms_;
  }
  void hurry() { due_ = MonotonicMs{0}; }
  bool stalled(MonotonicMs now) const { return now - due_ >= 0; }
  MonotonicMs due() const { return due_; }

 private:
  std::int64_t patience_ms_ = limits::stall_first_ms;
  MonotonicMs due_{};
};

// Writes to `file` (made anew) and digests as it goes.
class Download {
 public:
  static Result<Download> start(const ArtifactDigest& digest, std::uint64_t size,
                                const std::filesystem::path& file);

  // A request that is due: credit for the first or the next chunks, or the last one again.
  std::optional<BulkGet> poll(MonotonicMs now);
  // True: the file is whole and has the right digest. Errors end the download.
  Result<bool> on_chunk(const BulkChunk& chunk, MonotonicMs now);
  void hurry() { timer_.hurry(); }
  MonotonicMs due() const { return timer_.due(); }

  const std::filesystem::path& file() const { return file_; }
  std::uint64_t size() const { return size_; }

 private:
  Download() = default;
  ArtifactDigest digest_;
  std::uint64_t size_ = 0;
  std::uint64_t received_ = 0;  // bytes, without a hole
  std::uint32_t credit_ = 0;    // chunks asked for and not here
  std::filesystem::path file_;
  Descriptor out_;
  Sha256 hash_;
  StallTimer timer_;
};

class Upload {
 public:
  static Result<Upload> start(const ArtifactDigest& digest, std::uint64_t size,
                              const std::filesystem::path& file);

  // The next chunk, if one may go: at most chunk_credit unacknowledged, and a single one until the
  // first answer (the coordinator may have it all already).
  Result<std::optional<BulkPut>> poll(MonotonicMs now);
  // True: stored, durably.
  Result<bool> on_ack(const BulkPutAck& ack, MonotonicMs now);
  void hurry() { timer_.hurry(); }
  MonotonicMs due() const { return timer_.due(); }

 private:
  Upload() = default;
  ArtifactDigest digest_;
  std::uint64_t size_ = 0;
  std::uint64_t sent_ = 0;          // bytes
  std::uint64_t acknowledged_ = 0;  // bytes
  bool started_ = false;
  bool answered_ = false;  // since the last stall
  Descriptor in_;
  StallTimer timer_;
};

}  // namespace prefgrid
