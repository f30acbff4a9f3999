// The inside of Core, split over files by subject: peers.cpp (hello, liveness), results.cpp (what
// becomes of an attempt), experiments.cpp (submit, cancel, retry, restore), assign.cpp (the
// scheduler), alone.cpp (jobs that share a worker with nobody), explain.cpp (questions),
// invariants.cpp.
#pragma once

#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "coordinator/core/core.h"
#include "coordinator/core/job_table.h"
#include "coordinator/core/ready_queue.h"
#include "coordinator/core/worker_table.h"

namespace prefgrid {

namespace core_limits {
// Results that wait for their artefacts. An agent sends one again, so the oldest may be forgotten.
inline constexpr std::size_t deferred_results = 256;
inline constexpr std::size_t executors_per_worker = 4'096;
inline constexpr std::size_t profiles = 1'024;
inline constexpr std::size_t problem_bytes = 512;  // of a failure's message, kept per failed job
// Leases in hand per executor: at least 2 so that the next job is there when one ends, and at most
// enough for a synced batch's round trip of jobs that take no time at all.
inline constexpr std::size_t leases_per_executor = 2;
inline constexpr std::size_t leases_per_executor_max = 256;
inline constexpr double work_in_hand_ms = 1'000;      // per executor (design §7)
inline constexpr std::int64_t rest_ms = 5'000;        // no new lease after one was handed back
inline constexpr std::int64_t silent_heartbeats = 3;  // then a namesake on that host takes over
}  // namespace core_limits

struct Core::Impl {
  explicit Impl(CoreOptions given) : options(given) {}

  // --- core_impl.cpp: dispatch, time, facts ---
  Effects react(MonotonicMs now_given, WallMs wall_given, std::vector<Event> events);
  void run_timers();
  void forgive_silence();
  void job_fact(JobIndex job, decltype(JobFact::state) state);
  template <class What>
  void event_fact(const JobKey* job, Attempt attempt, const std::string& worker, What what) {
    effects.facts.push_back(EventFact{wall, job ? std::optional(*job) : std::nullopt, attempt,
                                      worker, std::move(what)});
  }
  void send(const PeerId& peer, Message message) {
    effects.sends.push_back(SendTo{peer, std::move(message)});
  }
  void set_timer(MonotonicMs due, int subject, std::uint32_t id, std::uint32_t generation);

  void on(const JobsRestored& event);
  void restore(const JobFact& fact);
  void on(const ExperimentSubmitted& event);
  void on(PeerMessage& event);
  void on(const ArtifactComplete& event);
  void on(const LeasesUndelivered& event);
  void on(const WorkerGone& event);
  void on(const LoopStalled&) { forgive_silence(); }
  void on(const DrainWorker& event);
  void on(const CancelExperiment& event);
  void on(const ReviveExperiment& event);
  void on(const RetryFailed& event);
  void on(const Tick&) {}

  // --- peers.cpp ---
  void on_hello(const PeerId& peer, const WorkerHello& hello, bool holder_gone);
  void match_kinds(WorkerSlot slot);
  void on_progress(const PeerId& peer, const Progress& progress);
  std::string refusal(const PeerId& peer, const WorkerHello& hello, bool holder_gone);
  // Which of the named leases the worker may keep; the others go into the answer.
  std::vector<LeaseId> reconcile(WorkerSlot slot, const std::vector<LeaseId>& held, bool was_known);
  bool keep_held(WorkerSlot slot, const LeaseId& held);
  void confirm(LeaseSlot lease);
  // Sends again what the last hello did not show, or what nothing was heard of for long: a lease
  // that the coordinator believes in and the worker does not know would never end.
  void resend_unshown(WorkerSlot slot);
  void resend_silent(WorkerSlot slot);
  void resend_leases(WorkerSlot slot, const std::vector<LeaseSlot>& leases);
  void lose_worker(WorkerSlot slot, const std::string& reason, bool charge);
  void on_goodbye(const PeerId& peer);
  void on_waits(WorkerSlot slot, const std::string& reason);
  void check_silence(WorkerSlot slot);

  // --- results.cpp ---
  void on_result(const PeerId& peer, ResultMessage message,
                 std::vector<ArtifactDigest> missing_artifacts);
  void on_failure(const PeerId& peer, const FailureMessage& message);
  void on_returned(const PeerId& peer, const LeaseReturned& message);
  // "" if the result may be committed, else why it may not.
  std::string objection(JobIndex job, Attempt attempt) const;
  void commit(JobIndex job, const std::string& worker, ResultMessage message);
  void defer(const PeerId& peer, ResultMessage message, std::vector<ArtifactDigest> missing);
  void drop_result(const PeerId& peer, const LeaseId& lease, const std::string& reason);
  // The lease, if it is the one that the job is out under now.
  std::optional<LeaseSlot> current_lease(const LeaseId& id) const;
  // Takes the lease off its worker; the caller gives the job its next state.
  void end_lease(LeaseSlot lease);
  void charge(JobIndex job, const std::string& worker, JobFailure failure);
  void back_to_ready(JobIndex job);
  std::string name_of(const PeerId& peer) const;
  void note_problem(JobIndex job, const std::string& message);

  // --- assign.cpp ---
  void assign();
  bool takes_leases(const Worker& worker) const;
  std::size_t runnable_for(const Worker& worker) const;
  std::size_t grant_size(const Worker& worker, std::uint16_t kind) const;
  std::optional<ReadyQueue::Group> choose(WorkerSlot slot);
  std::size_t grant(WorkerSlot slot, const ReadyQueue::Group& group, std::size_t limit);
  void lease_out(WorkerSlot slot, JobIndex job);
  bool reclaim_queued();
  LeaseGrant describe(const LeaseEntry& lease) const;
  double expected_ms(std::uint16_t kind) const;
  void note_duration(std::uint16_t kind, std::uint64_t duration_ms);
  void mark_hungry(WorkerSlot slot) { hungry.insert(slot); }
  void feed_hungry();
  bool feed(WorkerSlot slot);  // false: it gets nothing more for now
  void flush_outgoing();

  // --- alone.cpp: jobs that share a worker with nobody (job_table.h, runs_alone) ---
  void push_alone(JobIndex job);
  // The worker's one lease is of such a job.
  bool runs_one_alone(WorkerSlot slot) const;
  bool is_alone_candidate(JobIndex job, const Worker& worker) const;
  // The most urgent one for that worker that no worker is kept free for.
  std::optional<JobIndex> best_alone(const Worker& worker);
  // Gives it one, or keeps it free for one. False: neither, let it have other jobs.
  bool feed_alone(WorkerSlot slot);
  // An idle worker takes one for which a busy one is kept free.
  bool take_over_alone(WorkerSlot slot);
  void drop_stale_reservations();
  bool waits_alone(JobIndex job) const;  // for checks

  // --- explain.cpp ---
  std::string describe_job(JobIndex job) const;
  std::string why_waiting(JobIndex job) const;
  std::string why_waiting_for_inputs(JobIndex job) const;
  std::string why_not_leased(JobIndex job) const;

  // --- invariants.cpp ---
  void check_invariants() const;
  std::size_t wanted_for(const Worker& worker) const;

  struct Timer {
    MonotonicMs due{};
    int subject = 0;
    std::uint32_t id = 0;
    std::uint32_t generation = 0;
    bool operator>(const Timer& other) const {
      return std::tie(due, subject, id, generation) >
             std::tie(other.due, other.subject, other.id, other.generation);
    }
  };
  enum Subject { silence, resend, rested, retry };

  struct Deferred {
    std::uint64_t number = 0;  // arrival
    PeerId peer;
    ResultMessage message;
    std::vector<ArtifactDigest> missing;
  };

  CoreOptions options;
  MonotonicMs now{};
  WallMs wall{};
  Effects effects;

  JobTable table;
  ReadyQueue queue{table};
  WorkerTable workers;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers;
  struct Alone {
    Urgency urgency;
    JobIndex job = no_index;
    bool operator<(const Alone& other) const {
      return std::tie(other.urgency, job) < std::tie(urgency, other.job);
    }
  };
  struct Reservation {
    JobIndex job = no_index;
    std::uint32_t generation = 0;  // of the worker
  };
  std::vector<std::set<Alone>> alone;              // ready ones, by kind; stale entries are skipped
  std::map<WorkerSlot, Reservation> reservations;  // busy workers that get nothing but this, next

  std::set<WorkerSlot> hungry;   // may take leases: the next assign looks at them
  std::set<WorkerSlot> resends;  // said hello: what they do not show goes out again
  std::set<WorkerSlot> unfed;    // could take more, but no job was there
  std::map<WorkerSlot, std::vector<LeaseGrant>> outgoing;  // of the assign under way
  std::vector<double> durations_ms;                        // by kind; < 0: not measured
  std::map<LeaseId, Deferred> deferred;
  std::multimap<ArtifactDigest, LeaseId> awaited;
  std::uint64_t next_deferred = 0;
  std::map<JobIndex, std::string> problems;  // last failure of jobs that are not done
  std::map<NumericsProfile, std::uint64_t> profiles;
  CoreCounters counters;
};

}  // namespace prefgrid
