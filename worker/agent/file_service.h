// What the bulk thread does: brings a job's inputs to where its executor finds them, and its
// outputs to where the coordinator finds them. Commands and bulk messages come in with `now`; bulk
// messages and reports go out. No socket and no clock: the thread (bulk_thread.h) has those.
// Single-threaded.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/messages.h"
#include "worker/agent/artifact_cache.h"
#include "worker/agent/job_folders.h"
#include "worker/agent/session.h"
#include "worker/agent/transfers.h"

namespace prefgrid {

struct FilesPrepared {
  Ticket ticket{};
  std::vector<LocalInput> inputs;
};
struct FilesStored {
  Ticket ticket{};
  JobResult result;  // artefacts digested; the small ones inline, the others with the coordinator
};
struct FilesFailed {
  Ticket ticket{};
  Error error;
};
struct FailureJudged {
  Ticket ticket{};
  bool no_room = false;
};
struct RoomLost {
  std::string reason;  // one line for a person
};
struct RoomFound {};
using FileReport =
    std::variant<FilesPrepared, FilesStored, FilesFailed, FailureJudged, RoomLost, RoomFound>;

// Free bytes where the jobs write (disk_room.h); tests put their own.
using RoomProbe = std::function<std::uint64_t()>;

class FileService {
 public:
  FileService(ArtifactCache cache, JobFolders folders, RoomProbe room = nullptr);

  std::string output_root() const { return folders_.output_root().string(); }

  void prepare(PrepareFiles command, MonotonicMs now);
  void store(StoreFiles command, MonotonicMs now);
  void judge(const JudgeFailure& command, MonotonicMs now);
  void release(const ReleaseFiles& command);

  void on_bulk(const BulkMessage& message, MonotonicMs now);
  void hurry();  // the coordinator is there (again): ask for what is under way at once

  std::vector<BulkMessage> outgoing(MonotonicMs now);  // call until empty, then at next_deadline()
  // While the disk is full: looks at it when that is due; outputs that found no room wait here.
  void look_for_room(MonotonicMs now);
  std::vector<FileReport> take_reports();
  std::optional<MonotonicMs> next_deadline() const;
  std::optional<MonotonicMs> next_look() const { return next_look_; }

 private:
  struct Storing {
    std::string output_dir;
    JobResult result;
    std::size_t taken = 0;             // artefacts in the cache
    std::size_t inline_bytes = 0;      // of these
    std::set<ArtifactDigest> uploads;  // not yet stored
  };
  struct Job {
    std::vector<ResolvedInput> inputs;
    std::set<ArtifactDigest> missing;  // of the inputs, not yet in the cache
    std::vector<InputRef> acquired;    // links held
    int evictions = 0;                 // objects gone between fetch and link
    std::optional<Storing> storing;
  };
  struct Wanted {  // in the order in which they were asked for
    std::set<Ticket> waiting;
    std::uint64_t size = 0;
  };

  void look_for_inputs(Ticket ticket);
  Result<bool> have(const ArtifactRef& artifact);
  void finish_inputs(Ticket ticket);
  void go_on_storing(Ticket ticket);
  Result<void> take_outputs(Ticket ticket);
  Result<void> take_output(Ticket ticket, ArtifactRef& artifact);
  void lose_room(const std::string& reason);
  void fail(Ticket ticket, Error error);
  void on_chunk(const BulkChunk& chunk, MonotonicMs now);
  void on_ack(const BulkPutAck& ack, MonotonicMs now);
  void download_ended(const ArtifactDigest& digest, const std::optional<Error>& error);
  void upload_ended(const ArtifactDigest& digest, const std::optional<Error>& error);
  void start_transfers();
  std::set<ArtifactDigest> in_use() const;

  ArtifactCache cache_;
  JobFolders folders_;
  std::map<Ticket, Job> jobs_;
  std::map<ArtifactDigest, Wanted> downloads_wanted_;
  std::map<ArtifactDigest, Wanted> uploads_wanted_;
  std::deque<ArtifactDigest> download_queue_;  // may hold digests that nobody wants any more
  std::deque<ArtifactDigest> upload_queue_;
  std::map<ArtifactDigest, Download> downloads_;  // under way, at most transfers_at_once
  std::map<ArtifactDigest, Upload> uploads_;
  std::vector<FileReport> reports_;

  RoomProbe room_;
  MonotonicMs now_{};                     // of the call under way
  std::optional<MonotonicMs> next_look_;  // while the disk is full
  std::int64_t patience_ms_ = limits::room_first_ms;
  std::optional<MonotonicMs> found_room_;  // last
  std::set<Ticket> stalled_;               // outputs that wait for room
};

}  // namespace prefgrid
