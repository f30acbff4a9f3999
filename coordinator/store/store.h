// The store: one folder that holds everything a sweep knows. docs/store-format.md has the layout.
//
// Threads: `commit` and `recover` belong to the loop; artefact writes to the bulk server; reads to
// anyone. A full disk closes the database under a lock that every call takes, so a reopening never
// pulls it away from a reader; a visitor of each_… must not call the store.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/store/database.h"
#include "coordinator/store/holder.h"
#include "coordinator/store/records.h"

namespace prefgrid {

// Everything that one drain of the loop makes durable together, in this order.
struct StoreBatch {
  std::vector<ExperimentRecord> experiments;
  std::vector<Fact> facts;

  bool empty() const { return experiments.empty() && facts.empty(); }
};

struct StoredEvent {
  std::uint64_t sequence = 0;
  EventFact event;
};

class Store {
 public:
  // Makes the folder or opens what is in it, and holds it. Errors: held by another coordinator, a
  // newer format, too little room, damage (naming the file); none of these changes the database.
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& folder,
                                             HolderTimes times = {});
  // For verbs while no coordinator runs: reads only, writes nothing at all.
  static Result<std::unique_ptr<Store>> open_read_only(const std::filesystem::path& folder);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  Holder& holder() { return *holder_; }  // of a store that was opened for writing
  // What opening found and repaired, a line each: a tail that a crash had cut.
  const std::vector<std::string>& findings() const { return findings_; }

  // Durable when this returns. out_of_space: nothing is acknowledged; the batch is kept, and
  // `recover` writes it; no other commit may come before that succeeded.
  Result<void> commit(StoreBatch batch);
  // True while the disk is full, whoever noticed it.
  bool out_of_space() const { return out_of_space_; }
  // A write beside the database found no room. Believed unless `recover` would say that there is
  // enough: a single artefact may be larger than that.
  void note_out_of_space();
  // Gives up the ballast, reopens the database once there is room, writes the batch that failed.
  // False: still no room.
  Result<bool> recover();

  Result<std::vector<ExperimentRecord>> experiments() const;
  Result<std::optional<JobFact>> job(const JobKey& key) const;
  Result<void> each_job(const std::function<Result<bool>(const JobFact&)>& visit) const;
  Result<std::optional<ResultFact>> result(const JobKey& key) const;  // its log is left out
  Result<void> each_result(const std::function<Result<bool>(const ResultFact&)>& visit) const;
  Result<std::vector<StoredEvent>> events_of(const JobKey& key) const;
  Result<void> each_event(std::uint64_t from_sequence,
                          const std::function<Result<bool>(const StoredEvent&)>& visit) const;
  // Of the job's last attempt that left one.
  Result<std::optional<std::string>> log(const JobKey& key) const;
  SequenceRecord sequence() const;

  // Artefacts. Small ones lie in the database, large ones in DIR/artifacts/ab/.
  Result<std::optional<std::uint64_t>> artifact_size(const ArtifactDigest& digest) const;
  // At most max_bytes from the offset; fewer at the end. ErrorCode::not_found: no such artefact.
  Result<std::string> read_artifact(const ArtifactDigest& digest, std::uint64_t offset,
                                    std::size_t max_bytes) const;
  // The whole content, checked against its digest. Refuses more than max_bytes.
  Result<std::string> artifact(const ArtifactDigest& digest, std::size_t max_bytes) const;
  // Durable when it returns; storing what is there already does nothing.
  Result<ArtifactDigest> put_artifact(std::string_view content);
  // A whole, synced file on this folder's disk becomes the artefact: it is moved.
  Result<void> adopt_artifact(const ArtifactDigest& digest, std::uint64_t size,
                              const std::filesystem::path& file);

  // Reads every record and every artefact: what is wrong, a line each. (store_check.cpp)
  Result<std::vector<std::string>> check() const;

 private:
  explicit Store(std::filesystem::path folder);
  Result<void> create();
  Result<bool> room_to_go_on() const;
  Result<void> inspect();
  Result<void> load_sequence();
  Result<void> check_history() const;
  void compare_with_acknowledged();
  void acknowledge() const;
  Result<void> commit_locked(const StoreBatch& batch);
  Result<void> write_locked(std::vector<DatabaseWrite> writes, SequenceRecord after);
  Result<void> put_artifact_record(const ArtifactDigest& digest, std::string value);
  Result<std::optional<std::string>> get(Family family, std::string_view key) const;
  Result<void> scan(
      Family family, std::string_view from,
      const std::function<Result<bool>(std::string_view, std::string_view)>& visit) const;

  std::filesystem::path folder_;
  std::optional<Holder> holder_;
  std::vector<std::string> findings_;
  Descriptor acknowledged_;  // DIR/acknowledged

  mutable std::shared_mutex open_mutex_;  // exclusive: closing and reopening the database
  std::optional<Database> database_;

  mutable std::mutex write_mutex_;  // one writer at a time; it owns the two below
  SequenceRecord sequence_;
  std::optional<StoreBatch> failed_batch_;  // what `recover` has to write

  std::atomic<bool> out_of_space_{false};
};

}  // namespace prefgrid
