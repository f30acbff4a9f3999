// Every job that the coordinator knows, its state, its edges, and the experiments that want it.
// Jobs are dense 32-bit indices in here; JobKeys stay at the door. Made for 1,000,000 jobs: about
// 150 bytes each with two inputs (Core::memory_bytes; docs/architecture.md has the sum).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/messages.h"
#include "coordinator/core/core.h"
#include "coordinator/core/key_index.h"

namespace prefgrid {

using JobIndex = std::uint32_t;
inline constexpr std::uint32_t no_index = std::numeric_limits<std::uint32_t>::max();

namespace job_state {
struct Waiting {
  std::uint32_t unmet = 0;  // inputs whose jobs are not done
  std::uint32_t dead = 0;   // of these: quarantined, cancelled, or behind such a job
};
struct Ready {};
struct Leased {
  std::uint32_t lease = no_index;  // WorkerTable's
};
struct Failed {};  // in back-off: a timer makes it ready
struct Done {};
struct Quarantined {};
struct Cancelled {};
}  // namespace job_state
using JobState =
    std::variant<job_state::Waiting, job_state::Ready, job_state::Leased, job_state::Failed,
                 job_state::Done, job_state::Quarantined, job_state::Cancelled>;

struct Job {
  JobKey key;
  std::uint64_t affinity = 0;
  JobState state;
  Attempt attempt = 0;                 // the last one issued
  std::uint32_t first_in = no_index;   // edges to its inputs' jobs
  std::uint32_t first_out = no_index;  // edges to the jobs that it is an input of
  std::uint32_t first_member = no_index;
  std::uint16_t kind = 0;
  std::uint16_t path = 0;  // jobs on the longest path behind it
  std::array<std::uint8_t, failure_class_count> failures{};
  bool planned : 1 = false;  // false: only a stored record names it
  bool deterministic : 1 = true;
  bool attempt_lost : 1 = false;  // the last attempt ended by its worker's silence
  bool lost_charged : 1 = false;  // and the job was charged for that
};
static_assert(sizeof(Job) <= 80, "a million of them must stay small");

// It may have killed the worker that it ran on, or its neighbours' memory: no other job shares a
// worker with it any more, so that only its own attempts tell.
bool runs_alone(const std::array<std::uint8_t, failure_class_count>& failures);
inline bool runs_alone(const Job& job) {
  return runs_alone(job.failures);
}

// The order in which ready jobs go out.
struct Urgency {
  std::int32_t priority = 0;
  std::uint16_t path = 0;
  auto operator<=>(const Urgency&) const = default;
};

class JobTable {
 public:
  struct Experiment {
    ExperimentId id{};
    std::string name;
    std::int32_t priority = 0;
    bool cancelled = false;
    bool changed = false;
    JobCounts counts;
    std::vector<StageProgress> stages;
    std::vector<JobIndex> jobs;  // by plan index
  };
  struct Submission {
    std::uint32_t experiment = 0;
    std::vector<JobIndex> revived;  // were cancelled
  };
  struct Place {
    std::uint32_t experiment = 0;
    std::uint32_t plan_index = 0;
  };

  std::size_t size() const { return jobs_.size(); }
  const Job& operator[](JobIndex job) const { return jobs_[job]; }
  std::optional<JobIndex> find(const JobKey& key) const;
  JobIndex find_or_add(const JobKey& key);

  // What no state follows from. set_state keeps everything else in step.
  Job& edit(JobIndex job) { return jobs_[job]; }
  // Moves the job, the counts, and the jobs behind it (their inputs arrive, die or come back).
  void set_state(JobIndex job, JobState next);
  // Waiting or Ready, as its inputs' states say.
  JobState runnable_state(JobIndex job) const;

  // Precondition: the id is new.
  Submission submit(const ExperimentSubmitted& submitted);
  std::optional<std::uint32_t> find_experiment(ExperimentId id) const;
  const std::vector<Experiment>& experiments() const { return experiments_; }
  // Jobs of its that some experiment still wants keep their states; returns the unfinished others.
  std::vector<JobIndex> cancel_experiment(std::uint32_t experiment);
  // Wants its jobs again; returns those that were cancelled.
  std::vector<JobIndex> revive_experiment(std::uint32_t experiment, std::int32_t priority);

  bool wanted(JobIndex job) const { return urgency(job).has_value(); }
  // By the most urgent experiment that wants it; nullopt: none does.
  std::optional<Urgency> urgency(JobIndex job) const;
  Place place(JobIndex job) const;  // precondition: an experiment names it; prefers wanting ones

  bool belongs_to(JobIndex job, std::uint32_t experiment) const;

  const std::vector<KindVersion>& kinds() const { return kinds_; }
  std::uint16_t intern(const KindVersion& kind);
  std::uint32_t ready_count(std::uint16_t kind) const { return ready_counts_[kind]; }

  // Since the last call: jobs that became ready or changed urgency; experiments that changed.
  std::vector<JobIndex> take_became_ready() { return std::exchange(became_ready_, {}); }
  std::vector<ExperimentId> take_changed();

  std::vector<JobIndex> inputs(JobIndex job) const;
  std::size_t memory_bytes() const;
  void check_invariants() const;

 private:
  struct Edge {
    JobIndex from = 0;
    JobIndex to = 0;
    std::uint32_t next_out = no_index;
    std::uint32_t next_in = no_index;
  };
  struct Member {
    std::uint32_t experiment = 0;
    std::uint32_t plan_index = 0;
    std::uint32_t next = no_index;
    std::uint16_t stage = 0;
  };
  // What a job's new state means to the jobs behind it.
  struct Ripple {
    JobIndex job = 0;
    bool done = false;
    int dead = 0;
  };

  void apply(JobIndex job, JobState next, std::vector<Ripple>& ripples);
  void recount(JobIndex job, std::uint32_t JobCounts::*before, std::uint32_t JobCounts::*after);
  void add_member(JobIndex job, Member member, bool restored);
  void adopt_plan(JobIndex job, const CoreJob& planned, const CorePlan& plan,
                  const std::vector<JobIndex>& indices, std::uint16_t kind);
  void reserve_for(const CorePlan& plan);

  std::vector<Job> jobs_;
  KeyIndex index_;
  std::vector<Edge> edges_;
  std::vector<Member> members_;
  std::vector<Experiment> experiments_;
  std::unordered_map<std::uint32_t, std::uint32_t> experiment_index_;
  std::vector<KindVersion> kinds_;
  std::vector<std::uint32_t> ready_counts_;  // by kind
  std::vector<JobIndex> became_ready_;
  std::vector<std::uint32_t> changed_;
};

// Which of its experiments' counts a job is in.
std::uint32_t JobCounts::*count_of(const JobState& state);
// No result will come of it as things stand.
bool is_dead(const JobState& state);

}  // namespace prefgrid
