// What must hold between any two events, counted anew from the ground. For tests.
#include <algorithm>
#include <string>

#include "common/check.h"
#include "coordinator/core/core_impl.h"

namespace prefgrid {

void JobTable::check_invariants() const {
  std::vector<std::uint32_t> ready(kinds_.size(), 0);
  std::vector<JobCounts> totals(experiments_.size());
  for (JobIndex index = 0; index < jobs_.size(); ++index) {
    const Job& job = jobs_[index];
    const std::string key = job.key.hex();
    PREFGRID_CHECK(find(job.key) == index, key);
    PREFGRID_CHECK(job.planned == (job.first_member != no_index), key);
    if (std::holds_alternative<job_state::Ready>(job.state)) ++ready[job.kind];
    if (const auto* waiting = std::get_if<job_state::Waiting>(&job.state); waiting && job.planned) {
      const JobState expected = runnable_state(index);
      const auto* again = std::get_if<job_state::Waiting>(&expected);
      PREFGRID_CHECK(again != nullptr, "all inputs of waiting job " + key + " are done");
      PREFGRID_CHECK(again->unmet == waiting->unmet && again->dead == waiting->dead,
                     key + ": " + std::to_string(waiting->unmet) + "/" +
                         std::to_string(waiting->dead) + ", should be " +
                         std::to_string(again->unmet) + "/" + std::to_string(again->dead));
    }
    PREFGRID_CHECK(!std::holds_alternative<job_state::Cancelled>(job.state) || !wanted(index),
                   "cancelled job " + key + " is wanted");
    const bool at_rest = std::holds_alternative<job_state::Done>(job.state) ||
                         std::holds_alternative<job_state::Quarantined>(job.state) ||
                         std::holds_alternative<job_state::Cancelled>(job.state);
    PREFGRID_CHECK(!job.planned || at_rest || wanted(index), "job " + key + " is not cancelled");
    for (std::uint32_t m = job.first_member; m != no_index; m = members_[m].next) {
      ++totals[members_[m].experiment].total;
      ++(totals[members_[m].experiment].*count_of(job.state));
      PREFGRID_CHECK(experiments_[members_[m].experiment].jobs[members_[m].plan_index] == index,
                     key);
    }
  }
  PREFGRID_CHECK(ready == ready_counts_, "ready jobs are counted wrongly");
  for (std::size_t e = 0; e < experiments_.size(); ++e) {
    JobCounts stages;
    for (const StageProgress& stage : experiments_[e].stages) {
      for (const auto field :
           {&JobCounts::total, &JobCounts::waiting, &JobCounts::ready, &JobCounts::running,
            &JobCounts::retrying, &JobCounts::done, &JobCounts::failed, &JobCounts::blocked,
            &JobCounts::cancelled, &JobCounts::reused}) {
        stages.*field += stage.counts.*field;
      }
    }
    totals[e].reused = experiments_[e].counts.reused;
    PREFGRID_CHECK(totals[e] == experiments_[e].counts, experiments_[e].name);
    PREFGRID_CHECK(stages == experiments_[e].counts, experiments_[e].name);
  }
}

void Core::Impl::check_invariants() const {
  table.check_invariants();
  workers.check_invariants();
  std::size_t leased_jobs = 0;
  for (JobIndex index = 0; index < table.size(); ++index) {
    const Job& job = table[index];
    const std::string key = job.key.hex();
    if (const auto* leased = std::get_if<job_state::Leased>(&job.state)) {
      ++leased_jobs;
      const LeaseEntry& lease = workers.lease(leased->lease);
      PREFGRID_CHECK(lease.job == index && lease.attempt == job.attempt, key);
      PREFGRID_CHECK(job.attempt > 0 || !job.planned, key);
    }
    if (std::holds_alternative<job_state::Ready>(job.state) && table.wanted(index)) {
      const bool queued = runs_alone(job) ? waits_alone(index) : queue.holds(index);
      PREFGRID_CHECK(queued, "ready job " + key + " is in no queue");
    }
    for (const std::uint8_t count : job.failures) {
      PREFGRID_CHECK(
          count < options.attempts_per_job || !std::holds_alternative<job_state::Ready>(job.state),
          "job " + key + " is ready with its budget spent");
    }
  }
  std::size_t leases = 0;
  for (WorkerSlot slot = 0; slot < workers.slots(); ++slot) {
    if (workers[slot].live) leases += workers[slot].leases;
  }
  PREFGRID_CHECK(leases == leased_jobs, std::to_string(leases) + " leases, " +
                                            std::to_string(leased_jobs) + " leased jobs");
  PREFGRID_CHECK(outgoing.empty() && effects.facts.empty(), "effects were left behind");
  // No executor idles while a job is ready for it.
  for (WorkerSlot slot = 0; slot < workers.slots(); ++slot) {
    const Worker& worker = workers[slot];
    if (!worker.live) continue;
    for (const LeaseSlot lease : workers.leases_of(slot)) {
      PREFGRID_CHECK(worker.leases == 1 || !runs_alone(table[workers.lease(lease).job]),
                     "a job that should run alone shares worker " + worker.name);
    }
    if (!takes_leases(worker) || worker.leases >= worker.executors) continue;
    if (runs_one_alone(slot) || reservations.contains(slot)) continue;
    PREFGRID_CHECK(!hungry.contains(slot) && wanted_for(worker) == 0,
                   "worker " + worker.name + " idles while jobs are ready for it");
  }
  for (const auto& [slot, reservation] : reservations) {
    PREFGRID_CHECK(workers[slot].leases > 0 && !runs_one_alone(slot),
                   "worker " + workers[slot].name + " is kept free and idle");
  }
  for (const auto& [digest, id] : awaited) PREFGRID_CHECK(deferred.contains(id), digest.hex());
}

std::size_t Core::Impl::wanted_for(const Worker& worker) const {
  std::size_t jobs = 0;
  for (JobIndex index = 0; index < table.size(); ++index) {
    if (std::holds_alternative<job_state::Ready>(table[index].state) && table.wanted(index) &&
        std::ranges::binary_search(worker.kinds, table[index].kind) &&
        (worker.leases == 0 || !runs_alone(table[index]))) {
      ++jobs;
    }
  }
  return jobs;
}

}  // namespace prefgrid
