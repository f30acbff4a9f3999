// The session towards the coordinator: hello, leases, settlement. What it does with executors and
// files is in session_jobs.cpp.
#include "worker/agent/session.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/text.h"

namespace prefgrid {
namespace {

std::size_t index_of(SlotId id) {
  return static_cast<std::size_t>(id);
}

}  // namespace

Session::Session(SessionConfig config) : config_(std::move(config)) {
  PREFGRID_CHECK(config_.executors > 0, "an agent without executors");
  slots_.resize(config_.executors);
}

AgentEffects Session::take_effects() {
  return std::exchange(effects_, {});
}

Session::Slot& Session::slot(SlotId id) {
  PREFGRID_CHECK(index_of(id) < slots_.size(), "slot " + std::to_string(index_of(id)));
  return slots_[index_of(id)];
}

bool Session::stopping() const {
  return std::holds_alternative<Stopping>(connection_) ||
         std::holds_alternative<Exited>(connection_);
}

void Session::send(Message message) {
  emit(SendControl{std::move(message)});
}

void Session::exit_with(AgentExit code, std::string message) {
  if (std::holds_alternative<Exited>(connection_)) return;
  connection_ = Exited{};
  emit(ExitAgent{code, std::move(message)});
}

AgentEffects Session::start() {
  for (std::uint32_t i = 0; i < config_.executors; ++i) emit(StartExecutor{SlotId{i}});
  return take_effects();
}

WorkerHello Session::hello() const {
  WorkerHello hello;
  hello.name = config_.name;
  hello.host = config_.host;
  hello.pid = config_.pid;
  hello.executors = config_.executors;
  hello.kinds = abilities_->kinds;
  hello.profile = abilities_->profile;
  hello.software_version = config_.software_version;
  hello.waits_for = waits_for_;
  for (const auto& [ticket, task] : tasks_) hello.held.push_back(task.lease.id);
  return hello;
}

void Session::say_hello(MonotonicMs now, std::int64_t retry_ms, bool second) {
  connection_ = Greeting{now, retry_ms, false, second};
  emit(SendControl{hello()});
}

AgentEffects Session::on_message(Message message, MonotonicMs now) {
  if (auto* welcomed = std::get_if<Welcomed>(&connection_)) welcomed->last_heard = now;
  if (auto* welcome = std::get_if<Welcome>(&message)) {
    on_welcome(*welcome, now);
  } else if (auto* refused = std::get_if<Refused>(&message)) {
    on_refused(*refused);
  } else if (auto* leases = std::get_if<Leases>(&message)) {
    if (auto* greeting = std::get_if<Greeting>(&connection_)) greeting->leases_arrived = true;
    for (Lease& lease : leases->leases) on_lease(std::move(lease));
    if (welcomed() && !waits_for_.empty()) send_beat();  // it has not heard
  } else if (auto* settled = std::get_if<Settled>(&message)) {
    on_settled(settled->lease);
  } else if (auto* cancel = std::get_if<CancelLease>(&message)) {
    on_cancel(cancel->lease);
  } else if (std::holds_alternative<Goodbye>(message)) {
    if (auto* stop = std::get_if<Stopping>(&connection_)) stop->answered = true;
    exit_if_done();
  }  // the rest is not for agents; a heartbeat has said all by arriving
  start_jobs();
  return take_effects();
}

AgentEffects Session::on_damaged_frame(const Error& error, MonotonicMs) {
  // Another protocol version will not go away by waiting; a damaged frame is lost like any other.
  if (error.code == ErrorCode::conflict) exit_with(AgentExit::refused, error.message);
  return take_effects();
}

void Session::on_welcome(const Welcome& welcome, MonotonicMs now) {
  const auto* greeting = std::get_if<Greeting>(&connection_);
  if (!greeting) return;  // the answer to an earlier copy of the hello
  const bool again = greeting->leases_arrived && !greeting->second;
  Welcomed welcomed{limits::heartbeat_ms, now, now};
  if (welcome.heartbeat_ms > 0) welcomed.heartbeat_ms = welcome.heartbeat_ms;
  connection_ = welcomed;
  emit(UseBulkEndpoint{welcome.bulk_endpoint});
  for (const LeaseId& lease : welcome.dropped) {
    Ticket ticket{};
    const Task* task = find(lease, &ticket);
    // A finished one is still worth sending: a late result is kept where it can be.
    if (task && !std::holds_alternative<Unsettled>(task->state)) stop_task(ticket);
  }
  for (const auto& [ticket, task] : tasks_) {
    const auto* unsettled = std::get_if<Unsettled>(&task.state);
    if (!unsettled) continue;
    resends_.emplace_back(now + limits::resend_ms, ticket);
    send(unsettled->message);
  }
  // Leases that crossed the hello were not in it: list them, so that both sides agree.
  if (again) say_hello(now, 2 * welcomed.heartbeat_ms, true);
}

void Session::exit_if_done() {
  const auto* stop = std::get_if<Stopping>(&connection_);
  if (stop && stop->answered && tasks_.empty()) exit_with(AgentExit::asked, "stopped");
}

void Session::on_refused(const Refused& refused) {
  if (stopping()) return exit_with(AgentExit::asked, "stopped");
  exit_with(AgentExit::refused, "the coordinator refused this worker: " + refused.reason);
}

void Session::on_lease(Lease lease) {
  const LeaseId id = lease.id;
  const KindVersion kind{lease.spec.kind, lease.spec.kind_version};
  if (const auto held = by_job_.find(id.job); held != by_job_.end()) {
    return adopt(held->second, id.attempt);
  }
  if (stopping() || !waits_for_.empty() || !kinds_.contains(kind) ||
      tasks_.size() >= limits::held_leases) {
    return send(LeaseReturned{id});
  }
  const Ticket ticket{next_ticket_++};
  Task task;
  task.output_dir = config_.output_root + "/" + id.job.short_hex() + "-" +
                    std::to_string(static_cast<std::uint64_t>(ticket));
  if (lease.inputs.empty()) {
    task.state = Pending{};
    pending_.insert(ticket);
  } else {
    task.has_files = true;
    task.state = Preparing{};
    emit(PrepareFiles{ticket, std::move(lease.inputs)});
    lease.inputs.clear();
  }
  task.lease = std::move(lease);
  tasks_.emplace(ticket, std::move(task));
  by_job_.emplace(id.job, ticket);
}

void Session::adopt(Ticket ticket, Attempt attempt) {
  Task& task = tasks_.at(ticket);
  if (attempt < task.lease.id.attempt) return;  // a late copy of an old lease
  task.lease.id.attempt = attempt;
  auto* unsettled = std::get_if<Unsettled>(&task.state);
  if (!unsettled) return;
  if (auto* result = std::get_if<ResultMessage>(&unsettled->message)) {
    result->lease = task.lease.id;
  } else if (auto* failure = std::get_if<FailureMessage>(&unsettled->message)) {
    failure->lease = task.lease.id;
  }
  send(unsettled->message);
}

Session::Task* Session::find(const LeaseId& lease, Ticket* ticket) {
  const auto held = by_job_.find(lease.job);
  if (held == by_job_.end()) return nullptr;
  Task& task = tasks_.at(held->second);
  if (task.lease.id != lease) return nullptr;
  *ticket = held->second;
  return &task;
}

void Session::on_settled(const LeaseId& lease) {
  Ticket ticket{};
  const Task* task = find(lease, &ticket);
  // Nothing was reported for it yet: the coordinator knows the outcome from elsewhere.
  if (task) stop_task(ticket);
  while (!resends_.empty() && !tasks_.contains(resends_.front().second)) resends_.pop_front();
  exit_if_done();
}

void Session::on_cancel(const LeaseId& lease) {
  Ticket ticket{};
  if (!find(lease, &ticket)) return;
  stop_task(ticket);
  send(LeaseReturned{lease});
}

void Session::send_beat() {
  if (waits_for_.empty()) return send(Heartbeat{});
  send(WorkerWaits{waits_for_});
}

AgentEffects Session::on_send_failed(MonotonicMs now) {
  // The socket's queue is full: nobody reads. What was lost is said again with the next hello.
  if (std::holds_alternative<Welcomed>(connection_)) {
    connection_ = Greeting{now, limits::hello_retry_max_ms, false, false};
  }
  return take_effects();
}

AgentEffects Session::on_tick(MonotonicMs now) {
  if (auto* welcomed = std::get_if<Welcomed>(&connection_)) {
    const std::int64_t beat = welcomed->heartbeat_ms;
    if (now - welcomed->last_heard >= limits::silent_heartbeats * beat) {
      say_hello(now, limits::silent_heartbeats * beat, false);
    } else if (now - welcomed->last_beat >= beat) {
      welcomed->last_beat = now;
      send_beat();
    }
  } else if (const auto* greeting = std::get_if<Greeting>(&connection_)) {
    if (now - greeting->sent >= greeting->retry_ms) {
      const std::int64_t retry = std::min(2 * greeting->retry_ms, limits::hello_retry_max_ms);
      say_hello(now, retry, greeting->second);
    }
  } else if (const auto* stop = std::get_if<Stopping>(&connection_)) {
    if (now - stop->deadline >= 0) exit_with(AgentExit::asked, "stopped, without an answer");
  }
  while (!resends_.empty() && now - resends_.front().first >= 0) {
    const Ticket ticket = resends_.front().second;
    resends_.pop_front();
    const auto task = tasks_.find(ticket);
    if (task == tasks_.end()) continue;
    const auto* unsettled = std::get_if<Unsettled>(&task->second.state);
    if (!unsettled || !welcomed()) continue;  // the next welcome sends it anyhow
    resends_.emplace_back(now + limits::resend_ms, ticket);
    send(unsettled->message);
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto* down = std::get_if<Down>(&slots_[i].state);
    if (!down || now - down->restart < 0 || stopping()) continue;
    slots_[i].state = Starting{};
    emit(StartExecutor{SlotId{static_cast<std::uint32_t>(i)}});
  }
  start_jobs();
  return take_effects();
}

std::optional<MonotonicMs> Session::next_deadline() const {
  std::optional<MonotonicMs> next;
  const auto consider = [&next](MonotonicMs time) {
    if (!next || time < *next) next = time;
  };
  if (const auto* welcomed = std::get_if<Welcomed>(&connection_)) {
    consider(welcomed->last_beat + welcomed->heartbeat_ms);
    consider(welcomed->last_heard + limits::silent_heartbeats * welcomed->heartbeat_ms);
    if (!resends_.empty()) consider(resends_.front().first);
  } else if (const auto* greeting = std::get_if<Greeting>(&connection_)) {
    consider(greeting->sent + greeting->retry_ms);
  } else if (const auto* stop = std::get_if<Stopping>(&connection_)) {
    consider(stop->deadline);
  }
  if (!stopping()) {
    for (const Slot& place : slots_) {
      if (const auto* down = std::get_if<Down>(&place.state)) consider(down->restart);
    }
  }
  return next;
}

AgentEffects Session::shutdown(MonotonicMs now) {
  if (stopping()) return take_effects();
  const bool known = abilities_.has_value();
  const bool heard = welcomed();
  connection_ = Stopping{now + (heard ? limits::farewell_ms : limits::farewell_unheard_ms), false};
  std::vector<Ticket> unfinished;
  for (const auto& [ticket, task] : tasks_) {
    const auto* unsettled = std::get_if<Unsettled>(&task.state);
    if (!unsettled) {
      unfinished.push_back(ticket);
    } else if (!heard) {
      send(unsettled->message);  // the coordinator may be back, and its welcome on the way
    }
  }
  for (const Ticket ticket : unfinished) {
    const LeaseId lease = tasks_.at(ticket).lease.id;
    stop_task(ticket);
    send(LeaseReturned{lease});
  }
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (std::holds_alternative<Down>(slots_[i].state)) continue;
    if (std::holds_alternative<Ending>(slots_[i].state)) continue;
    slots_[i].state = Ending{};
    emit(KillExecutor{SlotId{i}});
  }
  if (known) {
    // Voids what is on its way here, too: no second round is needed.
    send(Goodbye{});
  } else {
    exit_with(AgentExit::asked, "stopped");
  }
  return take_effects();
}

void Session::check_invariants() const {
  std::size_t unsettled = 0;
  std::size_t bytes = 0;
  PREFGRID_CHECK(by_job_.size() == tasks_.size(), "two tasks for one job");
  for (const auto& [ticket, task] : tasks_) {
    const auto held = by_job_.find(task.lease.id.job);
    PREFGRID_CHECK(held != by_job_.end() && held->second == ticket, "a task that no job names");
    PREFGRID_CHECK(std::holds_alternative<Pending>(task.state) == pending_.contains(ticket),
                   "pending_ is out of step");
    if (const auto* running = std::get_if<Running>(&task.state)) {
      const auto* busy = std::get_if<Busy>(&slots_.at(index_of(running->slot)).state);
      PREFGRID_CHECK(busy && busy->ticket == ticket, "a running task whose executor is elsewhere");
    }
    if (const auto* done = std::get_if<Unsettled>(&task.state)) {
      unsettled += 1;
      bytes += done->bytes;
    }
  }
  PREFGRID_CHECK(unsettled == unsettled_ && bytes == unsettled_bytes_, "unsettled counts");
  for (const Slot& place : slots_) {
    const auto* busy = std::get_if<Busy>(&place.state);
    if (!busy) continue;
    const auto task = tasks_.find(busy->ticket);
    PREFGRID_CHECK(task != tasks_.end() && std::holds_alternative<Running>(task->second.state),
                   "an executor that runs a job nobody holds");
  }
}

}  // namespace prefgrid
