// Workers come, go silent, come back.
#include <algorithm>
#include <set>

#include "common/check.h"
#include "coordinator/core/core_impl.h"
#include "coordinator/core/planted_bug.h"

namespace prefgrid {
namespace {

bool has_control_character(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool same_process(const Worker& worker, const WorkerHello& hello) {
  return worker.host == hello.host && worker.pid == hello.pid;
}

}  // namespace

std::string Core::Impl::refusal(const PeerId& peer, const WorkerHello& hello, bool holder_gone) {
  if (hello.name.empty() || hello.name.size() > limits::name_bytes ||
      has_control_character(hello.name) || hello.host.size() > limits::name_bytes) {
    return "a worker's name must have 1 to " + std::to_string(limits::name_bytes) +
           " printable bytes";
  }
  if (hello.executors == 0 || hello.executors > core_limits::executors_per_worker) {
    return "a worker must have 1 to " + std::to_string(core_limits::executors_per_worker) +
           " executors, not " + std::to_string(hello.executors);
  }
  const auto slot = workers.by_name(hello.name);
  if (!slot) return "";
  const Worker& holder = workers[*slot];
  if (!holder.peer || same_process(holder, hello)) return "";
  const std::int64_t silent_ms = now - holder.last_heard;
  const bool silent =
      holder.peer != peer && silent_ms > core_limits::silent_heartbeats * options.heartbeat_ms;
  if (holder.host == hello.host && (holder_gone || silent)) return "";
  return "the name \"" + hello.name + "\" is held by process " + std::to_string(holder.pid) +
         " on host " + holder.host + ", heard " + std::to_string(silent_ms) +
         " ms ago: stop that one or choose another name";
}

void Core::Impl::on_hello(const PeerId& peer, const WorkerHello& hello, bool holder_gone) {
  if (const std::string reason = refusal(peer, hello, holder_gone); !reason.empty()) {
    send(peer, Refused{reason});
    return;
  }
  const auto at_peer = workers.by_peer(peer);
  if (at_peer && workers[*at_peer].name != hello.name) {
    lose_worker(*at_peer, "its connection now belongs to " + hello.name, false);
  }
  auto slot = workers.by_name(hello.name);
  if (slot && workers[*slot].peer && !same_process(workers[*slot], hello)) {
    lose_worker(*slot, "replaced by process " + std::to_string(hello.pid), true);
    slot.reset();
  }
  const bool was_connected = slot && workers[*slot].peer;
  const bool is_new = !slot;
  if (is_new) slot = workers.add(hello.name);
  Worker& worker = workers.edit(*slot);
  worker.host = hello.host;
  worker.pid = hello.pid;
  worker.profile = hello.profile;
  worker.last_heard = now;
  worker.waits_for = hello.waits_for;
  worker.offers = hello.kinds;
  std::sort(worker.offers.begin(), worker.offers.end());
  match_kinds(*slot);
  workers.set_executors(*slot, hello.executors);
  if (worker.peer != peer) workers.set_peer(*slot, peer);
  if (!was_connected) {
    event_fact(nullptr, 0, hello.name, history::WorkerJoined{hello.host});
    if (is_new) set_timer(now + options.lease_timeout_ms, silence, *slot, worker.generation);
  }
  Welcome welcome;
  welcome.heartbeat_ms = static_cast<std::uint32_t>(options.heartbeat_ms);
  welcome.dropped = reconcile(*slot, hello.held, was_connected);
  send(peer, std::move(welcome));
  // Given by us, not held by it: lost on the way.
  resends.insert(*slot);
  mark_hungry(*slot);
}

void Core::Impl::match_kinds(WorkerSlot slot) {
  Worker& worker = workers.edit(slot);
  worker.kinds.clear();
  for (std::size_t kind = 0; kind < table.kinds().size(); ++kind) {
    if (std::binary_search(worker.offers.begin(), worker.offers.end(), table.kinds()[kind])) {
      worker.kinds.push_back(static_cast<std::uint16_t>(kind));
    }
  }
}

std::vector<LeaseId> Core::Impl::reconcile(WorkerSlot slot, const std::vector<LeaseId>& held,
                                           bool was_known) {
  // What the hello does not name is unproved again.
  for (const LeaseSlot lease : workers.leases_of(slot)) workers.edit_lease(lease).confirmed = false;
  std::vector<LeaseId> dropped;
  for (const LeaseId& id : held) {
    if (!keep_held(slot, id)) dropped.push_back(id);
  }
  if (was_known) return dropped;
  // From before a restart: the grant was written, the message never left or never arrived.
  for (const LeaseSlot lease : workers.leases_of(slot)) {
    if (workers.lease(lease).confirmed) continue;
    const JobIndex job = workers.lease(lease).job;
    event_fact(&table[job].key, table[job].attempt, workers[slot].name, history::LeaseLost{});
    end_lease(lease);
    table.edit(job).attempt_lost = true;
    back_to_ready(job);
  }
  return dropped;
}

bool Core::Impl::keep_held(WorkerSlot slot, const LeaseId& held) {
  const auto index = table.find(held.job);
  if (!index) return false;
  const Job& job = table[*index];
  if (job.attempt != held.attempt || !table.wanted(*index)) return false;
  if (const auto* leased = std::get_if<job_state::Leased>(&job.state)) {
    if (workers.lease(leased->lease).worker != slot) return false;
    confirm(leased->lease);
    return true;
  }
  // Thought lost, nobody else has it yet, and here it is: no step of it is wasted.
  const bool idle = std::holds_alternative<job_state::Ready>(job.state) ||
                    std::holds_alternative<job_state::Failed>(job.state);
  if (!idle || !job.attempt_lost) return false;
  // The worker lives, so the job did not kill it.
  auto failures = job.failures;
  if (job.lost_charged) --failures[static_cast<std::size_t>(FailureClass::lost_worker)];
  const bool has_others = workers[slot].leases > 0;
  if (runs_one_alone(slot) || (has_others && runs_alone(failures))) return false;
  const LeaseSlot lease = workers.give(slot, *index, job.attempt, expected_ms(job.kind), now);
  confirm(lease);
  if (job.lost_charged) problems.erase(*index);
  table.edit(*index).failures = failures;
  table.edit(*index).lost_charged = false;
  table.edit(*index).attempt_lost = false;
  table.set_state(*index, job_state::Leased{lease});
  job_fact(*index, LeasedFact{workers[slot].name, wall});
  event_fact(&job.key, job.attempt, workers[slot].name, history::Leased{});
  return true;
}

void Core::Impl::confirm(LeaseSlot lease) {
  LeaseEntry& entry = workers.edit_lease(lease);
  entry.confirmed = true;
  entry.last_sign = now;
}

void Core::Impl::resend_unshown(WorkerSlot slot) {
  std::vector<LeaseSlot> unshown;
  for (const LeaseSlot lease : workers.leases_of(slot)) {
    if (!workers.lease(lease).confirmed) unshown.push_back(lease);
  }
  resend_leases(slot, unshown);
}

void Core::Impl::resend_silent(WorkerSlot slot) {
  std::vector<LeaseSlot> silent_leases;
  for (const LeaseSlot lease : workers.leases_of(slot)) {
    if (now - workers.lease(lease).last_sign >= options.lease_timeout_ms) {
      silent_leases.push_back(lease);
    }
  }
  resend_leases(slot, silent_leases);
}

void Core::Impl::resend_leases(WorkerSlot slot, const std::vector<LeaseSlot>& leases) {
  const Worker& worker = workers[slot];
  if (!worker.live || !worker.peer) return;
  SendLeases message{*worker.peer, {}};
  for (const LeaseSlot lease : leases) {
    message.leases.push_back(describe(workers.lease(lease)));
    if (message.leases.size() == limits::leases_per_batch) {
      effects.sends.push_back(std::exchange(message, SendLeases{*worker.peer, {}}));
    }
  }
  if (!message.leases.empty()) effects.sends.push_back(std::move(message));
  if (worker.leases > 0 && !worker.resend_armed) {
    workers.edit(slot).resend_armed = true;
    set_timer(now + options.lease_timeout_ms, resend, slot, worker.generation);
  }
}

void Core::Impl::on_progress(const PeerId& peer, const Progress& progress) {
  if (const auto slot = current_lease(progress.lease)) {
    confirm(*slot);
    workers.edit_lease(*slot).progress = progress;
    return;
  }
  send(peer, CancelLease{progress.lease});
}

void Core::Impl::check_silence(WorkerSlot slot) {
  const Worker& worker = workers[slot];
  const std::int64_t silent_ms = now - worker.last_heard;
  if (silent_ms < options.lease_timeout_ms) {
    set_timer(worker.last_heard + options.lease_timeout_ms, silence, slot, worker.generation);
    return;
  }
  // One that was only known from the store is not to blame: the restart may have killed it too.
  lose_worker(slot, "silent for " + std::to_string(silent_ms) + " ms", worker.peer.has_value());
}

void Core::Impl::lose_worker(WorkerSlot slot, const std::string& reason, bool charge_running) {
  const std::string name = workers[slot].name;
  const std::size_t executors = workers[slot].executors;
  const auto leases = workers.leases_of(slot);
  const auto confirmed =
      static_cast<std::size_t>(std::count_if(leases.begin(), leases.end(), [this](LeaseSlot l) {
        return workers.lease(l).progress.has_value();
      }));
  // Charged are those that were running: seen at work, or else the oldest ones. The rest only
  // stood in its queue.
  std::size_t unseen_running = executors > confirmed ? executors - confirmed : 0;
  for (const LeaseSlot lease : leases) {
    if (PREFGRID_PLANTED(forget_lost_leases)) {
      const JobIndex forgotten = workers.lease(lease).job;
      workers.release(lease);
      table.set_state(forgotten, job_state::Failed{});
      continue;
    }
    const JobIndex job = workers.lease(lease).job;
    bool running = workers.lease(lease).progress.has_value();
    if (!running && unseen_running > 0) {
      running = true;
      --unseen_running;
    }
    ++counters.leases_lost;
    event_fact(&table[job].key, table[job].attempt, name, history::LeaseLost{});
    end_lease(lease);
    table.edit(job).attempt_lost = true;
    table.edit(job).lost_charged = charge_running && running;
    if (charge_running && running) {
      JobFailure failure;
      failure.failure_class = FailureClass::lost_worker;
      failure.message = "worker " + name + " was lost: " + reason;
      charge(job, name, std::move(failure));
    } else {
      back_to_ready(job);
    }
  }
  event_fact(nullptr, 0, name, history::WorkerLeft{reason});
  workers.remove(slot);
}

// It says so itself: whatever it held, or was about to get, runs there no more.
void Core::Impl::on_goodbye(const PeerId& peer) {
  if (const auto slot = workers.by_peer(peer)) {
    const std::string name = workers[*slot].name;
    for (const LeaseSlot lease : workers.leases_of(*slot)) {
      const JobIndex job = workers.lease(lease).job;
      event_fact(&table[job].key, table[job].attempt, name, history::LeaseReturned{});
      end_lease(lease);
      back_to_ready(job);
    }
    event_fact(nullptr, 0, name, history::WorkerLeft{"it was told to stop"});
    workers.remove(*slot);
  }
  send(peer, Goodbye{});
}

void Core::Impl::on_waits(WorkerSlot slot, const std::string& reason) {
  Worker& worker = workers.edit(slot);
  if (worker.waits_for == reason) return;
  // What it handed back for want of room says nothing about its leaving.
  if (reason.empty()) worker.rests_until = now;
  worker.waits_for = reason;
  mark_hungry(slot);
}

void Core::Impl::on(const WorkerGone& event) {
  const auto slot = workers.by_name(event.name);
  if (slot) lose_worker(*slot, event.reason, workers[*slot].peer.has_value());
}

void Core::Impl::on(const DrainWorker& event) {
  const auto slot = workers.by_name(event.name);
  if (!slot) return;
  workers.edit(*slot).draining = event.drain;
  mark_hungry(*slot);
}

void Core::Impl::on(const LeasesUndelivered& event) {
  const auto slot = workers.by_peer(event.peer);
  if (!slot) return;
  for (const LeaseId& id : event.leases) {
    const auto lease = current_lease(id);
    if (!lease || workers.lease(*lease).worker != *slot) continue;
    const JobIndex job = workers.lease(*lease).job;
    event_fact(&id.job, id.attempt, workers[*slot].name, history::LeaseLost{});
    end_lease(*lease);
    back_to_ready(job);
  }
  // Its queue is full or its connection gone: it says hello when it is back.
  workers.edit(*slot).rests_until = now + options.heartbeat_ms;
  set_timer(now + options.heartbeat_ms, rested, *slot, workers[*slot].generation);
}

}  // namespace prefgrid
