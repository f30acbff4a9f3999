// The scheduler: which ready jobs go to which worker, and how many at once. Runs once after each
// batch of events. Its cost follows the leases given, the workers touched and the kinds that these
// can run; never the number of jobs.
#include <algorithm>
#include <queue>

#include "common/check.h"
#include "coordinator/core/core_impl.h"

namespace prefgrid {
namespace {

// Until a kind has been measured: long enough that nobody hoards it, and a queue is reclaimed.
constexpr double unmeasured_ms = core_limits::work_in_hand_ms;
constexpr double newest_weight = 0.2;  // of the moving average of durations
constexpr double longest_ms = 1e9;
// Groups of a level that are looked at for one whose models no other worker has loaded.
constexpr std::size_t groups_looked_at = 8;
// Times that younger groups may be preferred to the oldest one of a level.
constexpr std::uint32_t patience = 16;

}  // namespace

double Core::Impl::expected_ms(std::uint16_t kind) const {
  if (kind >= durations_ms.size() || durations_ms[kind] < 0) return unmeasured_ms;
  return durations_ms[kind];
}

void Core::Impl::note_duration(std::uint16_t kind, std::uint64_t duration_ms) {
  if (durations_ms.size() <= kind) durations_ms.resize(kind + std::size_t{1}, -1);
  const double newest = std::min(static_cast<double>(duration_ms), longest_ms);
  double& average = durations_ms[kind];
  average = average < 0 ? newest : average + newest_weight * (newest - average);
}

bool Core::Impl::takes_leases(const Worker& worker) const {
  return worker.live && worker.peer && !worker.draining && worker.waits_for.empty() &&
         now >= worker.rests_until;
}

std::size_t Core::Impl::runnable_for(const Worker& worker) const {
  std::size_t jobs = 0;
  for (const std::uint16_t kind : worker.kinds) jobs += table.ready_count(kind);
  return jobs;
}

std::size_t Core::Impl::grant_size(const Worker& worker, std::uint16_t kind) const {
  const std::size_t executors = worker.executors;
  const std::size_t limit = core_limits::leases_per_executor_max * executors;
  if (worker.leases >= limit) return 0;
  // What it may have in hand: two jobs an executor, or more if these last less than a second.
  const std::size_t few = core_limits::leases_per_executor * executors;
  const double room_ms =
      core_limits::work_in_hand_ms * static_cast<double>(executors) - worker.expected_ms;
  const double by_time = std::clamp(room_ms / std::max(expected_ms(kind), 1e-3), 0.0,
                                    static_cast<double>(limit - worker.leases));
  const std::size_t room =
      std::max(static_cast<std::size_t>(by_time), few > worker.leases ? few - worker.leases : 0);
  // Its share of half of what is left, so that batches shrink towards the end; and no queue at
  // all once there is no more than one job for each executor.
  const std::size_t left = runnable_for(worker);
  const std::size_t everybody = std::max<std::size_t>(workers.executors(), 1);
  const std::size_t share = left * executors / (2 * everybody);
  if (worker.leases < executors) {
    return std::min(room, std::max(share, executors - worker.leases));
  }
  return left > everybody ? std::min(room, share) : 0;
}

std::optional<ReadyQueue::Group> Core::Impl::choose(WorkerSlot slot) {
  const Worker& worker = workers[slot];
  std::optional<Urgency> best;
  for (const std::uint16_t kind : worker.kinds) {
    const auto urgency = queue.best(kind);
    if (urgency && (!best || *best < *urgency)) best = urgency;
  }
  if (!best) return std::nullopt;
  std::optional<ReadyQueue::Group> oldest;
  std::optional<ReadyQueue::Group> oldest_unowned;
  for (const std::uint16_t kind : worker.kinds) {
    for (const auto& group : queue.groups(kind, *best, groups_looked_at)) {
      if (!oldest || group.number < oldest->number) oldest = group;
      const auto owner = workers.owner(group.affinity);
      if (owner && *owner != slot) continue;
      if (!oldest_unowned || group.number < oldest_unowned->number) oldest_unowned = group;
    }
  }
  PREFGRID_CHECK(oldest.has_value(), "a level of the ready queue is empty");
  // The oldest group must not wait for ever behind preferred ones.
  if (oldest->passed_over >= patience) return oldest;
  std::optional<ReadyQueue::Group> chosen;
  for (auto at = worker.resident.begin(); at != worker.resident.end() && !chosen; ++at) {
    for (const std::uint16_t kind : worker.kinds) {
      if (!chosen) chosen = queue.group_of(kind, *best, *at);
    }
  }
  if (!chosen) chosen = oldest_unowned ? oldest_unowned : oldest;
  if (chosen->number != oldest->number) queue.pass_over(*oldest);
  return chosen;
}

LeaseGrant Core::Impl::describe(const LeaseEntry& lease) const {
  const Job& job = table[lease.job];
  const JobTable::Place place = table.place(lease.job);
  return LeaseGrant{.id = {job.key, lease.attempt},
                    .experiment = table.experiments()[place.experiment].id,
                    .plan_index = place.plan_index,
                    .affinity = job.affinity};
}

std::size_t Core::Impl::grant(WorkerSlot slot, const ReadyQueue::Group& group, std::size_t limit) {
  const std::vector<JobIndex> jobs = queue.take(group, limit);
  for (const JobIndex job : jobs) lease_out(slot, job);
  return jobs.size();
}

void Core::Impl::lease_out(WorkerSlot slot, JobIndex index) {
  const std::string& name = workers[slot].name;
  Job& job = table.edit(index);
  ++job.attempt;
  PREFGRID_CHECK(job.attempt != 0, "attempts of job " + job.key.hex() + " are used up");
  job.attempt_lost = job.lost_charged = false;
  const LeaseSlot lease = workers.give(slot, index, job.attempt, expected_ms(job.kind), now);
  table.set_state(index, job_state::Leased{lease});
  job_fact(index, LeasedFact{name, wall});
  event_fact(&job.key, job.attempt, name, history::Leased{});
  outgoing[slot].push_back(describe(workers.lease(lease)));
  ++counters.leases_granted;
  workers.make_resident(slot, job.affinity);
}

void Core::Impl::feed_hungry() {
  // The emptiest first, so that a few jobs spread over all.
  using Entry = std::pair<double, WorkerSlot>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> order;
  for (const WorkerSlot slot : std::exchange(hungry, {})) {
    if (takes_leases(workers[slot])) order.emplace(workers[slot].fill(), slot);
  }
  while (!order.empty()) {
    const WorkerSlot slot = order.top().second;
    order.pop();
    if (feed(slot)) {
      order.emplace(workers[slot].fill(), slot);
    } else {
      unfed.insert(slot);
    }
  }
}

bool Core::Impl::feed(WorkerSlot slot) {
  if (runs_one_alone(slot) || feed_alone(slot)) return false;
  const auto group = choose(slot);
  const std::size_t size = group ? grant_size(workers[slot], group->kind) : 0;
  if (size > 0 && grant(slot, *group, size) > 0) return true;
  take_over_alone(slot);
  return false;
}

// When an executor idles and another worker has a queue of long jobs, the newest one of that queue
// goes back. True: some did.
bool Core::Impl::reclaim_queued() {
  bool any = false;
  for (const WorkerSlot idle : unfed) {
    const Worker& taker = workers[idle];
    if (!takes_leases(taker) || taker.leases >= taker.executors) continue;
    if (runs_one_alone(idle) || reservations.contains(idle)) continue;
    LeaseSlot best = no_index;
    for (WorkerSlot slot = 0; slot < workers.slots(); ++slot) {
      const Worker& worker = workers[slot];
      if (!worker.live || !worker.peer || worker.leases <= worker.executors) continue;
      const LeaseEntry& newest = workers.lease(worker.last_lease);
      const std::uint16_t kind = table[newest.job].kind;
      if (newest.progress || newest.expected_ms < core_limits::work_in_hand_ms ||
          outgoing.contains(slot) || !std::ranges::binary_search(taker.kinds, kind)) {
        continue;
      }
      if (best == no_index || workers[workers.lease(best).worker].fill() < worker.fill()) {
        best = worker.last_lease;
      }
    }
    if (best == no_index) continue;
    const LeaseEntry lease = workers.lease(best);
    const Worker& giver = workers[lease.worker];
    const JobKey key = table[lease.job].key;
    send(*giver.peer, CancelLease{LeaseId{key, lease.attempt}});
    event_fact(&key, lease.attempt, giver.name, history::LeaseReturned{});
    end_lease(best);
    back_to_ready(lease.job);
    any = true;
    break;
  }
  return any;
}

void Core::Impl::flush_outgoing() {
  for (auto& [slot, grants] : std::exchange(outgoing, {})) {
    const PeerId& peer = *workers[slot].peer;
    for (std::size_t at = 0; at < grants.size(); at += limits::leases_per_batch) {
      const std::size_t end = std::min(grants.size(), at + limits::leases_per_batch);
      effects.sends.push_back(SendLeases{peer,
                                         {grants.begin() + static_cast<std::ptrdiff_t>(at),
                                          grants.begin() + static_cast<std::ptrdiff_t>(end)}});
    }
    if (!workers[slot].resend_armed) {
      workers.edit(slot).resend_armed = true;
      set_timer(now + options.lease_timeout_ms, resend, slot, workers[slot].generation);
    }
  }
}

void Core::Impl::assign() {
  drop_stale_reservations();
  do {
    const std::vector<JobIndex> ready = table.take_became_ready();
    for (const JobIndex job : ready) {
      if (!std::holds_alternative<job_state::Ready>(table[job].state) || !table.wanted(job)) {
        continue;
      }
      if (runs_alone(table[job])) {
        push_alone(job);
      } else {
        queue.push(job);
      }
    }
    if (!ready.empty()) hungry.merge(std::exchange(unfed, {}));
    feed_hungry();
  } while (!hungry.empty() || reclaim_queued());
  flush_outgoing();
}

}  // namespace prefgrid
