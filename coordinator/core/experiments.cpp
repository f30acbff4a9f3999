// Experiments are restored, submitted, cancelled, retried.
#include <algorithm>

#include "common/check.h"
#include "coordinator/core/core_impl.h"
#include "coordinator/core/planted_bug.h"

namespace prefgrid {

void Core::Impl::on(const JobsRestored& event) {
  for (const JobFact& fact : event.jobs) restore(fact);
}

void Core::Impl::restore(const JobFact& fact) {
  const JobIndex index = table.find_or_add(fact.job);
  Job& job = table.edit(index);
  PREFGRID_CHECK(job.attempt == 0 && !job.planned,
                 "job " + fact.job.hex() + " restored twice, or after its experiment");
  job.attempt = fact.attempt;
  if (PREFGRID_PLANTED(attempts_restart_at_restore)) job.attempt = 0;
  std::transform(fact.failures.begin(), fact.failures.end(), job.failures.begin(),
                 [](std::uint32_t n) { return static_cast<std::uint8_t>(std::min(n, 0xffu)); });
  if (const auto* leased = std::get_if<LeasedFact>(&fact.state)) {
    auto slot = workers.by_name(leased->worker);
    if (!slot) {
      slot = workers.add(leased->worker);
      workers.edit(*slot).last_heard = now;
      set_timer(now + options.lease_timeout_ms, silence, *slot, workers[*slot].generation);
    }
    table.set_state(index, job_state::Leased{workers.give(*slot, index, job.attempt, 0, now)});
  } else if (std::holds_alternative<DoneFact>(fact.state)) {
    table.set_state(index, job_state::Done{});
  } else if (const auto* quarantined = std::get_if<QuarantinedFact>(&fact.state)) {
    note_problem(index, quarantined->failure.message);
    table.set_state(index, job_state::Quarantined{});
  } else if (std::holds_alternative<CancelledFact>(fact.state)) {
    table.set_state(index, job_state::Cancelled{});
  }
}

void Core::Impl::on(const ExperimentSubmitted& event) {
  const JobTable::Submission submission = table.submit(event);
  for (const JobIndex job : submission.revived) job_fact(job, WaitingFact{});
  if (!event.restored) event_fact(nullptr, 0, "", history::Submitted{event.name});
  for (WorkerSlot slot = 0; slot < workers.slots(); ++slot) {
    if (workers[slot].live) match_kinds(slot);
  }
}

void Core::Impl::on(const CancelExperiment& event) {
  const auto experiment = table.find_experiment(event.id);
  if (!experiment) return;
  for (const JobIndex job : table.cancel_experiment(*experiment)) {
    if (const auto* leased = std::get_if<job_state::Leased>(&table[job].state)) {
      const LeaseEntry& lease = workers.lease(leased->lease);
      if (const auto& peer = workers[lease.worker].peer) {
        send(*peer, CancelLease{LeaseId{table[job].key, lease.attempt}});
      }
      end_lease(leased->lease);
    }
    problems.erase(job);
    table.set_state(job, job_state::Cancelled{});
    job_fact(job, CancelledFact{});
    event_fact(&table[job].key, table[job].attempt, "", history::Cancelled{});
  }
}

void Core::Impl::on(const ReviveExperiment& event) {
  const auto experiment = table.find_experiment(event.id);
  if (!experiment || !table.experiments()[*experiment].cancelled) return;
  for (const JobIndex job : table.revive_experiment(*experiment, event.priority)) {
    job_fact(job, WaitingFact{});
  }
  event_fact(nullptr, 0, "", history::Submitted{table.experiments()[*experiment].name});
}

void Core::Impl::on(const RetryFailed& event) {
  const auto experiment = table.find_experiment(event.id);
  if (!experiment || table.experiments()[*experiment].cancelled) return;
  for (const JobIndex job : table.experiments()[*experiment].jobs) {
    const JobState& state = table[job].state;
    if (!std::holds_alternative<job_state::Quarantined>(state) &&
        !std::holds_alternative<job_state::Failed>(state)) {
      continue;
    }
    table.edit(job).failures = {};
    table.edit(job).lost_charged = false;
    problems.erase(job);
    event_fact(&table[job].key, table[job].attempt, "", history::Retried{});
    back_to_ready(job);
  }
}

}  // namespace prefgrid
