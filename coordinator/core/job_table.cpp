#include "coordinator/core/job_table.h"

#include <algorithm>

#include "common/check.h"
#include "coordinator/core/planted_bug.h"

namespace prefgrid {
namespace {

using job_state::Cancelled;
using job_state::Done;
using job_state::Quarantined;
using job_state::Ready;
using job_state::Waiting;

template <class T>
void grow(std::vector<T>& vector, std::size_t more) {
  const std::size_t needed = vector.size() + more;
  if (needed <= vector.capacity()) return;
  vector.reserve(std::max(needed, vector.capacity() + vector.capacity() / 2));
}

// Jobs on the longest path behind each job of the plan.
std::vector<std::uint16_t> longest_paths(const CorePlan& plan) {
  std::vector<std::uint16_t> paths(plan.jobs.size(), 0);
  for (std::size_t i = plan.jobs.size(); i-- > 0;) {
    const CoreJob& job = plan.jobs[i];
    const int length = std::min(paths[i] + 1, 0xffff);
    for (std::uint32_t d = 0; d < job.dependency_count; ++d) {
      std::uint16_t& path = paths[plan.dependencies[job.first_dependency + d]];
      path = static_cast<std::uint16_t>(std::max<int>(path, length));
    }
  }
  return paths;
}

}  // namespace

bool runs_alone(const std::array<std::uint8_t, failure_class_count>& failures) {
  if (PREFGRID_PLANTED(suspects_share_workers)) return false;
  return failures[static_cast<std::size_t>(FailureClass::lost_worker)] > 0 ||
         failures[static_cast<std::size_t>(FailureClass::crash)] > 0 ||
         failures[static_cast<std::size_t>(FailureClass::out_of_memory)] > 0;
}

bool is_dead(const JobState& state) {
  if (const auto* waiting = std::get_if<Waiting>(&state)) return waiting->dead > 0;
  return std::holds_alternative<Quarantined>(state) || std::holds_alternative<Cancelled>(state);
}

std::uint32_t JobCounts::*count_of(const JobState& state) {
  switch (state.index()) {
    case 0:
      return is_dead(state) ? &JobCounts::blocked : &JobCounts::waiting;
    case 1:
      return &JobCounts::ready;
    case 2:
      return &JobCounts::running;
    case 3:
      return &JobCounts::retrying;
    case 4:
      return &JobCounts::done;
    case 5:
      return &JobCounts::failed;
    default:
      return &JobCounts::cancelled;
  }
}

std::optional<JobIndex> JobTable::find(const JobKey& key) const {
  return index_.find(key, [this](JobIndex job) -> const JobKey& { return jobs_[job].key; });
}

JobIndex JobTable::find_or_add(const JobKey& key) {
  if (const auto found = find(key)) return *found;
  PREFGRID_CHECK(jobs_.size() < no_index, "too many jobs");
  const auto job = static_cast<JobIndex>(jobs_.size());
  jobs_.emplace_back().key = key;
  index_.insert(job, [this](JobIndex i) -> const JobKey& { return jobs_[i].key; });
  return job;
}

void JobTable::recount(JobIndex job, std::uint32_t JobCounts::*before,
                       std::uint32_t JobCounts::*after) {
  for (std::uint32_t m = jobs_[job].first_member; m != no_index; m = members_[m].next) {
    Experiment& experiment = experiments_[members_[m].experiment];
    JobCounts& stage = experiment.stages[members_[m].stage].counts;
    --(experiment.counts.*before);
    --(stage.*before);
    ++(experiment.counts.*after);
    ++(stage.*after);
    if (!std::exchange(experiment.changed, true)) changed_.push_back(members_[m].experiment);
  }
}

void JobTable::apply(JobIndex index, JobState next, std::vector<Ripple>& ripples) {
  Job& job = jobs_[index];
  const JobState before = std::exchange(job.state, next);
  const bool was_ready = std::holds_alternative<Ready>(before);
  const bool now_ready = std::holds_alternative<Ready>(next);
  if (was_ready && !now_ready) --ready_counts_[job.kind];
  if (!was_ready && now_ready) {
    ++ready_counts_[job.kind];
    became_ready_.push_back(index);
  }
  const auto from = count_of(before);
  const auto to = count_of(next);
  if (from != to) recount(index, from, to);
  const Ripple ripple{
      .job = index,
      .done = !std::holds_alternative<Done>(before) && std::holds_alternative<Done>(next),
      .dead = static_cast<int>(is_dead(next)) - static_cast<int>(is_dead(before))};
  if (PREFGRID_PLANTED(quarantine_skips_dependants) && ripple.dead > 0) return;
  if (ripple.done || ripple.dead != 0) ripples.push_back(ripple);
}

void JobTable::set_state(JobIndex job, JobState next) {
  std::vector<Ripple> ripples;
  apply(job, next, ripples);
  while (!ripples.empty()) {
    const Ripple ripple = ripples.back();
    ripples.pop_back();
    for (std::uint32_t e = jobs_[ripple.job].first_out; e != no_index; e = edges_[e].next_out) {
      const JobIndex behind = edges_[e].to;
      const auto* waiting = std::get_if<Waiting>(&jobs_[behind].state);
      if (waiting == nullptr) continue;
      const Waiting updated{waiting->unmet - (ripple.done ? 1u : 0u),
                            waiting->dead + static_cast<std::uint32_t>(ripple.dead)};
      if (updated.unmet == 0) {
        apply(behind, Ready{}, ripples);
      } else {
        apply(behind, updated, ripples);
      }
    }
  }
}

JobState JobTable::runnable_state(JobIndex job) const {
  Waiting waiting;
  for (std::uint32_t e = jobs_[job].first_in; e != no_index; e = edges_[e].next_in) {
    const JobState& input = jobs_[edges_[e].from].state;
    if (!std::holds_alternative<Done>(input)) ++waiting.unmet;
    if (is_dead(input)) ++waiting.dead;
  }
  if (waiting.unmet == 0 && jobs_[job].planned) return Ready{};
  return waiting;
}

std::uint16_t JobTable::intern(const KindVersion& kind) {
  const auto found = std::find(kinds_.begin(), kinds_.end(), kind);
  if (found != kinds_.end()) return static_cast<std::uint16_t>(found - kinds_.begin());
  PREFGRID_CHECK(kinds_.size() < 0xffff, "too many job kinds");
  kinds_.push_back(kind);
  ready_counts_.push_back(0);
  return static_cast<std::uint16_t>(kinds_.size() - 1);
}

void JobTable::reserve_for(const CorePlan& plan) {
  grow(jobs_, plan.jobs.size());
  grow(members_, plan.jobs.size());
  grow(edges_, plan.dependencies.size());
  index_.reserve(jobs_.size() + plan.jobs.size(),
                 [this](JobIndex i) -> const JobKey& { return jobs_[i].key; });
}

void JobTable::adopt_plan(JobIndex index, const CoreJob& planned, const CorePlan& plan,
                          const std::vector<JobIndex>& indices, std::uint16_t kind) {
  Job& job = jobs_[index];
  job.planned = true;
  job.kind = kind;
  job.affinity = planned.affinity;
  job.deterministic = planned.deterministic;
  for (std::uint32_t d = 0; d < planned.dependency_count; ++d) {
    const JobIndex from = indices[plan.dependencies[planned.first_dependency + d]];
    edges_.push_back(Edge{from, index, jobs_[from].first_out, job.first_in});
    jobs_[from].first_out = job.first_in = static_cast<std::uint32_t>(edges_.size() - 1);
  }
}

void JobTable::add_member(JobIndex index, Member member, bool restored) {
  Job& job = jobs_[index];
  member.next = job.first_member;
  members_.push_back(member);
  job.first_member = static_cast<std::uint32_t>(members_.size() - 1);
  Experiment& experiment = experiments_[member.experiment];
  const auto count = count_of(job.state);
  const bool reused = !restored && std::holds_alternative<Done>(job.state);
  for (JobCounts* counts : {&experiment.counts, &experiment.stages[member.stage].counts}) {
    ++counts->total;
    ++(counts->*count);
    if (reused) ++counts->reused;
  }
}

JobTable::Submission JobTable::submit(const ExperimentSubmitted& submitted) {
  PREFGRID_CHECK(!find_experiment(submitted.id), "an experiment was submitted twice");
  const CorePlan& plan = *submitted.plan;
  reserve_for(plan);
  Submission submission;
  submission.experiment = static_cast<std::uint32_t>(experiments_.size());
  experiment_index_[static_cast<std::uint32_t>(submitted.id)] = submission.experiment;
  Experiment& experiment = experiments_.emplace_back();
  experiment.id = submitted.id;
  experiment.name = submitted.name;
  experiment.priority = submitted.priority;
  experiment.cancelled = submitted.cancelled;
  experiment.changed = true;
  changed_.push_back(submission.experiment);
  for (const std::string& stage : plan.stages) {
    experiment.stages.push_back(StageProgress{stage, {}});
  }
  std::vector<std::uint16_t> kinds;
  for (const KindVersion& kind : plan.kinds) kinds.push_back(intern(kind));
  const std::vector<std::uint16_t> paths = longest_paths(plan);

  std::vector<JobIndex> indices;
  indices.reserve(plan.jobs.size());
  for (std::uint32_t i = 0; i < plan.jobs.size(); ++i) {
    const CoreJob& planned = plan.jobs[i];
    const JobIndex index = find_or_add(planned.key);
    const std::optional<Urgency> before = urgency(index);
    const bool is_new = !jobs_[index].planned;
    if (is_new) adopt_plan(index, planned, plan, indices, kinds[planned.kind]);
    jobs_[index].path = std::max(jobs_[index].path, paths[i]);
    const bool revive =
        !submitted.cancelled && std::holds_alternative<Cancelled>(jobs_[index].state);
    if (revive) submission.revived.push_back(index);
    if (revive || (is_new && std::holds_alternative<Waiting>(jobs_[index].state))) {
      set_state(index, runnable_state(index));
    }
    add_member(index, Member{submission.experiment, i, no_index, planned.stage},
               submitted.restored);
    if (std::holds_alternative<Ready>(jobs_[index].state) && urgency(index) != before) {
      became_ready_.push_back(index);
    }
    indices.push_back(index);
  }
  experiment.jobs = std::move(indices);
  return submission;
}

std::optional<std::uint32_t> JobTable::find_experiment(ExperimentId id) const {
  const auto found = experiment_index_.find(static_cast<std::uint32_t>(id));
  if (found == experiment_index_.end()) return std::nullopt;
  return found->second;
}

std::vector<JobIndex> JobTable::cancel_experiment(std::uint32_t slot) {
  Experiment& experiment = experiments_[slot];
  if (std::exchange(experiment.cancelled, true)) return {};
  if (!std::exchange(experiment.changed, true)) changed_.push_back(slot);
  std::vector<JobIndex> orphans;
  for (const JobIndex job : experiment.jobs) {
    const JobState& state = jobs_[job].state;
    if (std::holds_alternative<Done>(state) || std::holds_alternative<Quarantined>(state) ||
        std::holds_alternative<Cancelled>(state)) {
      continue;
    }
    if (!wanted(job)) {
      orphans.push_back(job);
    } else if (std::holds_alternative<Ready>(state)) {
      became_ready_.push_back(job);  // perhaps less urgent now
    }
  }
  return orphans;
}

std::vector<JobIndex> JobTable::revive_experiment(std::uint32_t slot, std::int32_t priority) {
  Experiment& experiment = experiments_[slot];
  if (!std::exchange(experiment.cancelled, false)) return {};
  experiment.priority = priority;
  if (!std::exchange(experiment.changed, true)) changed_.push_back(slot);
  std::vector<JobIndex> revived;
  for (const JobIndex job : experiment.jobs) {
    if (std::holds_alternative<Cancelled>(jobs_[job].state)) {
      set_state(job, runnable_state(job));
      revived.push_back(job);
    } else if (std::holds_alternative<Ready>(jobs_[job].state)) {
      became_ready_.push_back(job);  // perhaps more urgent now
    }
  }
  return revived;
}

std::optional<Urgency> JobTable::urgency(JobIndex job) const {
  std::optional<Urgency> best;
  for (std::uint32_t m = jobs_[job].first_member; m != no_index; m = members_[m].next) {
    const Experiment& experiment = experiments_[members_[m].experiment];
    if (experiment.cancelled) continue;
    if (!best || best->priority < experiment.priority) {
      best = Urgency{experiment.priority, jobs_[job].path};
    }
  }
  return best;
}

JobTable::Place JobTable::place(JobIndex job) const {
  const std::uint32_t first = jobs_[job].first_member;
  PREFGRID_CHECK(first != no_index, "no experiment names job " + jobs_[job].key.hex());
  for (std::uint32_t m = first; m != no_index; m = members_[m].next) {
    if (!experiments_[members_[m].experiment].cancelled) {
      return {members_[m].experiment, members_[m].plan_index};
    }
  }
  return {members_[first].experiment, members_[first].plan_index};
}

bool JobTable::belongs_to(JobIndex job, std::uint32_t experiment) const {
  for (std::uint32_t m = jobs_[job].first_member; m != no_index; m = members_[m].next) {
    if (members_[m].experiment == experiment) return true;
  }
  return false;
}

std::vector<ExperimentId> JobTable::take_changed() {
  std::vector<ExperimentId> ids;
  for (const std::uint32_t slot : std::exchange(changed_, {})) {
    experiments_[slot].changed = false;
    ids.push_back(experiments_[slot].id);
  }
  return ids;
}

std::vector<JobIndex> JobTable::inputs(JobIndex job) const {
  std::vector<JobIndex> found;
  for (std::uint32_t e = jobs_[job].first_in; e != no_index; e = edges_[e].next_in) {
    found.push_back(edges_[e].from);
  }
  return found;
}

std::size_t JobTable::memory_bytes() const {
  std::size_t bytes = jobs_.capacity() * sizeof(Job) + edges_.capacity() * sizeof(Edge) +
                      members_.capacity() * sizeof(Member) + index_.memory_bytes() +
                      became_ready_.capacity() * sizeof(JobIndex);
  for (const Experiment& experiment : experiments_) {
    bytes += sizeof experiment + experiment.jobs.capacity() * sizeof(JobIndex);
  }
  return bytes;
}

}  // namespace prefgrid
