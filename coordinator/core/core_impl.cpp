#include <algorithm>

#include "common/check.h"
#include "coordinator/core/core_impl.h"

namespace prefgrid {

Effects Core::Impl::react(MonotonicMs now_given, WallMs wall_given, std::vector<Event> events) {
  PREFGRID_CHECK(now_given >= now, "the monotonic clock went back");
  // A deadline that was missed by far: the loop stood still (a stopped process, a slow disk), and
  // what the workers said meanwhile may still lie in a queue.
  const bool stalled = !timers.empty() && now_given - timers.top().due > options.heartbeat_ms;
  now = now_given;
  wall = wall_given;
  effects = Effects{};
  if (stalled) forgive_silence();
  for (Event& event : events) {
    std::visit([this](auto& e) { on(e); }, event);
  }
  run_timers();
  // After all events: a later one may have settled what would be sent again.
  for (const WorkerSlot slot : std::exchange(resends, {})) resend_unshown(slot);
  assign();
  effects.changed = table.take_changed();
  return std::exchange(effects, {});
}

void Core::Impl::set_timer(MonotonicMs due, int subject, std::uint32_t id,
                           std::uint32_t generation) {
  timers.push(Timer{due, subject, id, generation});
}

void Core::Impl::run_timers() {
  while (!timers.empty() && timers.top().due <= now) {
    const Timer timer = timers.top();
    timers.pop();
    if (timer.subject == retry) {
      const Job& job = table[timer.id];
      if (std::holds_alternative<job_state::Failed>(job.state) && job.attempt == timer.generation) {
        table.set_state(timer.id, table.runnable_state(timer.id));
      }
      continue;
    }
    const Worker& worker = workers[timer.id];
    if (!worker.live || worker.generation != timer.generation) continue;
    switch (timer.subject) {
      case silence:
        check_silence(timer.id);
        break;
      case resend:
        workers.edit(timer.id).resend_armed = false;
        resend_silent(timer.id);
        break;
      default:
        mark_hungry(timer.id);
    }
  }
}

void Core::Impl::forgive_silence() {
  for (WorkerSlot slot = 0; slot < workers.slots(); ++slot) {
    if (workers[slot].live) workers.edit(slot).last_heard = now;
  }
}

void Core::Impl::job_fact(JobIndex index, decltype(JobFact::state) state) {
  const Job& job = table[index];
  JobFact fact{.job = job.key, .attempt = job.attempt, .state = std::move(state)};
  std::copy(job.failures.begin(), job.failures.end(), fact.failures.begin());
  effects.facts.push_back(std::move(fact));
}

void Core::Impl::on(PeerMessage& event) {
  if (const auto slot = workers.by_peer(event.peer)) workers.edit(*slot).last_heard = now;
  const PeerId& peer = event.peer;
  if (const auto* hello = std::get_if<WorkerHello>(&event.message)) {
    on_hello(peer, *hello, event.holder_gone);
  } else if (std::holds_alternative<Heartbeat>(event.message)) {
    if (const auto slot = workers.by_peer(peer)) {
      on_waits(*slot, "");
      send(peer, Heartbeat{});
    }
  } else if (const auto* waits = std::get_if<WorkerWaits>(&event.message)) {
    if (const auto slot = workers.by_peer(peer)) {
      on_waits(*slot, waits->reason);
      send(peer, Heartbeat{});
    }
  } else if (std::holds_alternative<Goodbye>(event.message)) {
    on_goodbye(peer);
  } else if (const auto* progress = std::get_if<Progress>(&event.message)) {
    on_progress(peer, *progress);
  } else if (auto* result = std::get_if<ResultMessage>(&event.message)) {
    on_result(peer, std::move(*result), std::move(event.missing_artifacts));
  } else if (const auto* failure = std::get_if<FailureMessage>(&event.message)) {
    on_failure(peer, *failure);
  } else if (const auto* returned = std::get_if<LeaseReturned>(&event.message)) {
    on_returned(peer, *returned);
  }
  // The rest is what a coordinator sends, or the loop's own: nothing to react to.
}

}  // namespace prefgrid
