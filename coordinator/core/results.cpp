// What becomes of an attempt: committed, charged, handed back, or of no interest any more.
#include <algorithm>

#include "common/check.h"
#include "coordinator/core/core_impl.h"
#include "coordinator/core/failure_policy.h"
#include "coordinator/core/planted_bug.h"

namespace prefgrid {

std::string Core::Impl::name_of(const PeerId& peer) const {
  const auto slot = workers.by_peer(peer);
  return slot ? workers[*slot].name : "";
}

std::optional<LeaseSlot> Core::Impl::current_lease(const LeaseId& id) const {
  const auto job = table.find(id.job);
  if (!job || table[*job].attempt != id.attempt) return std::nullopt;
  const auto* leased = std::get_if<job_state::Leased>(&table[*job].state);
  return leased ? std::optional(leased->lease) : std::nullopt;
}

void Core::Impl::end_lease(LeaseSlot lease) {
  mark_hungry(workers.lease(lease).worker);
  workers.release(lease);
}

void Core::Impl::note_problem(JobIndex job, const std::string& message) {
  problems[job] = message.substr(0, core_limits::problem_bytes);
}

std::string Core::Impl::objection(JobIndex index, Attempt attempt) const {
  const Job& job = table[index];
  if ((attempt == 0 || attempt > job.attempt) && !PREFGRID_PLANTED(accept_unissued_attempt)) {
    return "this store never issued that attempt";
  }
  if (PREFGRID_PLANTED(commit_twice)) return "";
  if (std::holds_alternative<job_state::Done>(job.state)) return "the job is done";
  if (std::holds_alternative<job_state::Cancelled>(job.state)) return "the job is cancelled";
  if (!job.deterministic && attempt != job.attempt) {
    return "the job is not deterministic and a newer attempt was issued";
  }
  return "";
}

void Core::Impl::on_result(const PeerId& peer, ResultMessage message,
                           std::vector<ArtifactDigest> missing_artifacts) {
  const auto job = table.find(message.lease.job);
  const std::string why_not =
      job ? objection(*job, message.lease.attempt) : "no experiment has that job";
  if (!why_not.empty()) {
    drop_result(peer, message.lease, why_not);
    return;
  }
  if (const auto lease = current_lease(message.lease)) confirm(*lease);
  if (!missing_artifacts.empty()) {
    defer(peer, std::move(message), std::move(missing_artifacts));
    return;
  }
  const LeaseId id = message.lease;
  commit(*job, name_of(peer), std::move(message));
  send(peer, Settled{id});
}

void Core::Impl::drop_result(const PeerId& peer, const LeaseId& lease, const std::string& reason) {
  ++counters.results_dropped;
  const auto job = table.find(lease.job);
  // A repetition of what was taken is no news.
  const bool repeated = job && std::holds_alternative<job_state::Done>(table[*job].state) &&
                        table[*job].attempt == lease.attempt;
  if (!repeated) {
    event_fact(&lease.job, lease.attempt, name_of(peer), history::ResultDropped{reason});
  }
  send(peer, Settled{lease});
}

void Core::Impl::commit(JobIndex index, const std::string& worker, ResultMessage message) {
  const Job& job = table[index];
  if (const auto* leased = std::get_if<job_state::Leased>(&job.state)) {
    const LeaseEntry& lease = workers.lease(leased->lease);
    const auto& holder = workers[lease.worker].peer;
    if (lease.attempt != message.lease.attempt && holder) {
      send(*holder, CancelLease{LeaseId{job.key, lease.attempt}});
    }
    end_lease(leased->lease);
  }
  if (job.planned) note_duration(job.kind, message.result.duration_ms);
  const auto profile = profiles.find(message.result.profile);
  if (profile != profiles.end()) {
    ++profile->second;
  } else if (profiles.size() < core_limits::profiles) {
    profiles.emplace(message.result.profile, 1);
  }
  problems.erase(index);
  ++counters.results_committed;
  table.set_state(index, job_state::Done{});
  job_fact(index, DoneFact{});
  event_fact(&job.key, message.lease.attempt, worker, history::Done{});
  effects.facts.push_back(ResultFact{.job = job.key,
                                     .attempt = message.lease.attempt,
                                     .worker = worker,
                                     .committed = wall,
                                     .result = std::move(message.result),
                                     .log = std::move(message.log)});
}

void Core::Impl::defer(const PeerId& peer, ResultMessage message,
                       std::vector<ArtifactDigest> missing) {
  const LeaseId id = message.lease;
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  const auto forget = [this](std::map<LeaseId, Deferred>::iterator at) {
    for (const ArtifactDigest& digest : at->second.missing) {
      auto [first, last] = awaited.equal_range(digest);
      while (first != last) first = first->second == at->first ? awaited.erase(first) : ++first;
    }
    deferred.erase(at);
  };
  if (const auto same = deferred.find(id); same != deferred.end()) forget(same);
  if (deferred.size() == core_limits::deferred_results) {
    forget(std::min_element(deferred.begin(), deferred.end(), [](const auto& a, const auto& b) {
      return a.second.number < b.second.number;
    }));
  }
  for (const ArtifactDigest& digest : missing) awaited.emplace(digest, id);
  deferred.emplace(id, Deferred{next_deferred++, peer, std::move(message), std::move(missing)});
}

void Core::Impl::on(const ArtifactComplete& event) {
  std::vector<LeaseId> waiting;
  const auto [first, last] = awaited.equal_range(event.digest);
  for (auto at = first; at != last; ++at) waiting.push_back(at->second);
  awaited.erase(first, last);
  for (const LeaseId& id : waiting) {
    const auto found = deferred.find(id);
    if (found == deferred.end()) continue;
    std::erase(found->second.missing, event.digest);
    if (!found->second.missing.empty()) continue;
    Deferred complete = std::move(found->second);
    deferred.erase(found);
    on_result(complete.peer, std::move(complete.message), {});
  }
}

void Core::Impl::back_to_ready(JobIndex job) {
  table.set_state(job, table.runnable_state(job));
  job_fact(job, WaitingFact{});
}

void Core::Impl::charge(JobIndex index, const std::string& worker, JobFailure failure) {
  Job& job = table.edit(index);
  const auto failure_class = static_cast<std::size_t>(failure.failure_class);
  std::uint8_t& count = job.failures[failure_class];
  if (count < 0xff) ++count;
  ++counters.failures_charged;
  note_problem(index, failure.message);
  event_fact(&job.key, job.attempt, worker, history::Failed{failure});
  if (count >= options.attempts_per_job) {
    table.set_state(index, job_state::Quarantined{});
    job_fact(index, QuarantinedFact{std::move(failure)});
    event_fact(&job.key, job.attempt, worker, history::Quarantined{});
    return;
  }
  const std::int64_t delay_ms = backoff_ms(failure.failure_class, count, options);
  if (delay_ms == 0) {
    back_to_ready(index);
    return;
  }
  table.set_state(index, job_state::Failed{});
  job_fact(index, WaitingFact{});
  set_timer(now + delay_ms, retry, index, job.attempt);
}

void Core::Impl::on_failure(const PeerId& peer, const FailureMessage& message) {
  const auto lease = current_lease(message.lease);
  if (!lease) {
    // An old attempt's failure says nothing that the newer one will not.
    drop_result(peer, message.lease, "a failure of an attempt that is not running");
    return;
  }
  if (!is_charged(message.failure.failure_class)) {
    on_returned(peer, LeaseReturned{message.lease});
  } else {
    const JobIndex job = workers.lease(*lease).job;
    const std::string worker = workers[workers.lease(*lease).worker].name;
    end_lease(*lease);
    table.edit(job).attempt_lost = false;
    charge(job, worker, message.failure);
  }
  send(peer, Settled{message.lease});
}

void Core::Impl::on_returned(const PeerId&, const LeaseReturned& message) {
  const auto lease = current_lease(message.lease);
  if (!lease) return;
  const JobIndex job = workers.lease(*lease).job;
  const WorkerSlot slot = workers.lease(*lease).worker;
  event_fact(&message.lease.job, message.lease.attempt, workers[slot].name,
             history::LeaseReturned{});
  end_lease(*lease);
  table.edit(job).attempt_lost = false;
  back_to_ready(job);
  Worker& worker = workers.edit(slot);
  worker.rests_until = now + core_limits::rest_ms;
  set_timer(worker.rests_until, rested, slot, worker.generation);
}

}  // namespace prefgrid
