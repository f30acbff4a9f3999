// The coordinator's decisions, pure: no clock, no random, no socket, no file. Time and events come
// in, effects (facts to persist, then messages to send) go out; equal inputs give equal outputs.
// Owned by the loop's thread. Rules: docs/architecture.md.
//
// Peers: any message of a worker counts as its heartbeat. A Heartbeat of a welcomed worker (or a
// WorkerWaits, in its stead) is answered with a Heartbeat; a Heartbeat of a stranger is not: an
// agent that hears nothing for a few heartbeats says hello again (a restarted coordinator does not
// know it yet).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/job.h"
#include "common/limits.h"
#include "coordinator/core/effects.h"
#include "coordinator/core/events.h"

namespace prefgrid {

struct CoreOptions {
  std::int64_t heartbeat_ms = limits::heartbeat_ms;
  std::int64_t lease_timeout_ms = limits::lease_timeout_ms;
  std::uint32_t attempts_per_job = limits::attempts_per_job;  // charged failures of one class
  std::int64_t backoff_ms = 1'000;                            // after the first failure; doubles
  std::int64_t backoff_limit_ms = 60'000;
};

// Every job of the experiment is in exactly one of these (not in `total` and `reused`).
struct JobCounts {
  std::uint32_t total = 0;
  std::uint32_t waiting = 0;  // for inputs
  std::uint32_t ready = 0;
  std::uint32_t running = 0;   // leased
  std::uint32_t retrying = 0;  // failed, in back-off
  std::uint32_t done = 0;
  std::uint32_t failed = 0;   // quarantined
  std::uint32_t blocked = 0;  // an input will not come: its maker is failed, blocked or cancelled
  std::uint32_t cancelled = 0;
  std::uint32_t reused = 0;  // of `done`: done when the experiment was submitted
  bool operator==(const JobCounts&) const = default;
};
struct StageProgress {
  std::string stage;
  JobCounts counts;
};
struct ExperimentProgress {
  ExperimentId id{};
  std::string name;
  std::int32_t priority = 0;
  bool cancelled = false;
  bool finished = false;  // nothing of it can run any more
  JobCounts counts;
  std::vector<StageProgress> stages;
};

struct WorkerView {
  std::string name;
  std::string host;
  std::uint64_t pid = 0;
  std::optional<PeerId> peer;  // nullopt: known from before a restart, not yet back
  std::uint32_t executors = 0;
  std::size_t leases = 0;
  std::int64_t silent_ms = 0;
  bool draining = false;
  std::string waits_for;  // "": it takes leases. Else why not: its disk is full
  NumericsProfile profile;
};

struct JobView {
  std::string state;  // "waiting", "blocked", "ready", "leased", "failed", "done", ...
  Attempt attempt = 0;
  FailureCounts failures{};
  std::string worker;                // of the lease
  std::string problem;               // the last failure's message
  std::optional<Progress> progress;  // of the lease
};

struct FailedJob {
  JobKey job;
  std::string message;
};

struct CoreCounters {
  std::uint64_t leases_granted = 0;
  std::uint64_t results_committed = 0;
  std::uint64_t results_dropped = 0;  // duplicates included
  std::uint64_t leases_lost = 0;
  std::uint64_t failures_charged = 0;
};

class Core {
 public:
  explicit Core(CoreOptions options = {});
  Core(Core&&) noexcept;
  Core& operator=(Core&&) noexcept;
  ~Core();

  // `now` never goes back. Leases are given once, after the last event of the batch.
  Effects react(MonotonicMs now, WallMs wall, std::vector<Event> events);
  Effects react(MonotonicMs now, WallMs wall, Event event);
  // When to send a Tick even if nothing else happens. May be early, never late.
  std::optional<MonotonicMs> next_deadline() const;

  // --- questions; none changes anything ---
  std::vector<ExperimentId> experiments() const;
  // Preconditions of both: the id was submitted.
  ExperimentProgress progress(ExperimentId id) const;
  bool finished(ExperimentId id) const;
  bool knows(ExperimentId id) const;
  std::vector<FailedJob> failed_jobs(ExperimentId id, std::size_t limit) const;

  std::optional<JobView> job(const JobKey& key) const;
  // One line for a person; "" for a job that is done or unknown.
  std::string why_waiting(const JobKey& key) const;

  std::vector<WorkerView> workers() const;
  std::optional<WorkerView> holder(const std::string& worker_name) const;
  // Committed results by numerics profile, since this process started.
  std::map<NumericsProfile, std::uint64_t> result_profiles() const;
  CoreCounters counters() const;
  std::size_t job_count() const;
  std::size_t memory_bytes() const;  // of the job tables, for measurements

  // Aborts with the values if the tables contradict each other. O(jobs): for tests.
  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prefgrid
