// What the bulk thread does: brings a job's inputs to where its executor finds them, and its
// outputs to where the coordinator finds them. Commands and bulk messages come in with `now`; bulk
// messages and reports go out. No socket and no clock: the thread (bulk_thread.h) has those.
// Single-threaded.
#pragma once

#include <cstdint>
#include <deque>
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
using FileReport = std::variant<FilesPrepared, FilesStored, FilesFailed>;

class FileService {
 public:
  FileService(ArtifactCache cache, JobFolders folders)
      : cache_(std::move(cache)), folders_(std::move(folders)) {}

  std::string output_root() const { return folders_.output_root().string(); }

  void prepare(PrepareFiles command, MonotonicMs now);
  void store(StoreFiles command, MonotonicMs now);
  void release(const ReleaseFiles& command);

  void on_bulk(const BulkMessage& message, MonotonicMs now);
  void hurry();  // the coordinator is there (again): ask for what is under way at once

  std::vector<BulkMessage> outgoing(MonotonicMs now);  // call until empty, then at next_deadline()
  std::vector<FileReport> take_reports();
  std::optional<MonotonicMs> next_deadline() const;

 private:
  struct Storing {
    JobResult result;
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
  Result<void> take_outputs(Ticket ticket, const std::string& output_dir, JobResult& result);
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
};

}  // namespace prefgrid
