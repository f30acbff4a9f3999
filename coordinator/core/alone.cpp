// Jobs that run alone: after an attempt that ended with its worker or executor, a job shares a
// worker with nobody, so that one that kills its workers condemns itself only, and whoever was
// beside it is charged once at most. They go out in the order of their urgency like all others;
// where no worker is idle, one is kept free for each: it gets nothing new until it has run dry.
#include <algorithm>

#include "coordinator/core/core_impl.h"

namespace prefgrid {

void Core::Impl::push_alone(JobIndex job) {
  for (const auto& [slot, reservation] : reservations) {
    if (reservation.job == job) return;
  }
  const std::uint16_t kind = table[job].kind;
  if (alone.size() <= kind) alone.resize(kind + std::size_t{1});
  alone[kind].insert(Alone{*table.urgency(job), job});
}

bool Core::Impl::runs_one_alone(WorkerSlot slot) const {
  const Worker& worker = workers[slot];
  return worker.leases == 1 && runs_alone(table[workers.lease(worker.first_lease).job]);
}

bool Core::Impl::is_alone_candidate(JobIndex job, const Worker& worker) const {
  return std::holds_alternative<job_state::Ready>(table[job].state) && runs_alone(table[job]) &&
         table.wanted(job) && std::ranges::binary_search(worker.kinds, table[job].kind);
}

std::optional<JobIndex> Core::Impl::best_alone(const Worker& worker) {
  std::optional<Alone> best;
  for (const std::uint16_t kind : worker.kinds) {
    if (kind >= alone.size()) continue;
    std::set<Alone>& jobs = alone[kind];
    while (!jobs.empty() && (!is_alone_candidate(jobs.begin()->job, worker) ||
                             table.urgency(jobs.begin()->job) != jobs.begin()->urgency)) {
      jobs.erase(jobs.begin());
    }
    if (!jobs.empty() && (!best || *jobs.begin() < *best)) best = *jobs.begin();
  }
  if (!best) return std::nullopt;
  // More urgent jobs go first; at equal urgency it has waited longer than most.
  for (const std::uint16_t kind : worker.kinds) {
    const auto urgency = queue.best(kind);
    if (urgency && best->urgency < *urgency) return std::nullopt;
  }
  return best->job;
}

bool Core::Impl::feed_alone(WorkerSlot slot) {
  const Worker& worker = workers[slot];
  const auto reserved = reservations.find(slot);
  const auto job =
      reserved != reservations.end() ? std::optional(reserved->second.job) : best_alone(worker);
  if (!job) return false;
  alone[table[*job].kind].erase(Alone{*table.urgency(*job), *job});
  if (worker.leases > 0) {
    reservations[slot] = Reservation{*job, worker.generation};
  } else {
    reservations.erase(slot);
    lease_out(slot, *job);
  }
  return true;
}

bool Core::Impl::take_over_alone(WorkerSlot slot) {
  if (workers[slot].leases > 0) return false;
  for (const auto& [other, reservation] : reservations) {
    if (!is_alone_candidate(reservation.job, workers[slot])) continue;
    const JobIndex job = reservation.job;
    mark_hungry(other);
    reservations.erase(other);
    lease_out(slot, job);
    return true;
  }
  return false;
}

// The worker has gone, drains, or waits itself; or the job was kept, cancelled or done elsewhere.
void Core::Impl::drop_stale_reservations() {
  bool any = false;
  for (auto at = reservations.begin(); at != reservations.end();) {
    const Worker& worker = workers[at->first];
    const JobIndex job = at->second.job;
    const bool same = worker.live && worker.generation == at->second.generation;
    if (same && takes_leases(worker) && is_alone_candidate(job, worker)) {
      ++at;
      continue;
    }
    mark_hungry(at->first);
    at = reservations.erase(at);
    any = true;
    if (std::holds_alternative<job_state::Ready>(table[job].state) && runs_alone(table[job]) &&
        table.wanted(job)) {
      push_alone(job);
    }
  }
  if (any) hungry.merge(std::exchange(unfed, {}));
}

bool Core::Impl::waits_alone(JobIndex job) const {
  const std::uint16_t kind = table[job].kind;
  const auto urgency = table.urgency(job);
  if (kind < alone.size() && urgency && alone[kind].contains(Alone{*urgency, job})) return true;
  return std::any_of(reservations.begin(), reservations.end(),
                     [job](const auto& entry) { return entry.second.job == job; });
}

}  // namespace prefgrid
