// The session towards its executors and files: which job runs where, and what becomes of it.
#include <algorithm>
#include <utility>

#include "common/check.h"
#include "worker/agent/session.h"

namespace prefgrid {
namespace {

// What a result or failure holds on to until it is settled.
std::size_t bytes_of(const Message& message) {
  std::size_t bytes = 512;
  if (const auto* result = std::get_if<ResultMessage>(&message)) {
    bytes += result->log.size();
    bytes += result->result.metrics.size() * sizeof(Metric);
    bytes += result->result.curve.size() * sizeof(CurvePoint);
    for (const ArtifactRef& artifact : result->result.artifacts) {
      bytes += sizeof artifact + (artifact.inline_data ? artifact.inline_data->size() : 0);
    }
  } else if (const auto* failure = std::get_if<FailureMessage>(&message)) {
    bytes += failure->failure.message.size() + failure->failure.log_tail.size();
  }
  return bytes;
}

void keep_tail(std::string& text, std::size_t bytes) {
  if (text.size() > bytes) text.erase(0, text.size() - bytes);
}

JobFailure failure_of(const ExecutorDeath& death) {
  JobFailure failure;
  failure.failure_class = FailureClass::crash;
  failure.signal = death.signal;
  failure.log_tail = death.log_tail;
  if (!death.problem.empty()) {
    failure.message = death.problem;
    failure.signal = 0;
  } else if (death.signal == 9) {
    failure.failure_class = FailureClass::out_of_memory;
    failure.message = "the executor was killed (signal 9): probably out of memory";
  } else if (death.signal != 0) {
    failure.message = "the executor crashed (signal " + std::to_string(death.signal) + ")";
  } else {
    failure.message = "the executor exited with status " + std::to_string(death.exit_status) +
                      " in the middle of the job";
  }
  return failure;
}

}  // namespace

AgentEffects Session::executor_ready(SlotId id, ExecutorReady ready, MonotonicMs now) {
  Slot& place = slot(id);
  if (!std::holds_alternative<Starting>(place.state)) return take_effects();  // killed meanwhile
  place.state = Idle{};
  place.start_failures = 0;
  place.affinity = 0;
  if (!abilities_) {
    abilities_ = std::move(ready);
    kinds_.insert(abilities_->kinds.begin(), abilities_->kinds.end());
    if (!stopping()) say_hello(now, 1'000, false);
  } else if (abilities_->kinds != ready.kinds || abilities_->profile != ready.profile) {
    exit_with(AgentExit::executors_broken,
              "the executor changed under a running worker (other job kinds or another numerics "
              "profile): start the worker again");
  }
  start_jobs();
  return take_effects();
}

AgentEffects Session::executor_progress(SlotId id, Progress progress) {
  const auto* busy = std::get_if<Busy>(&slot(id).state);
  if (!busy || busy->told != progress.lease || !welcomed()) return take_effects();
  progress.lease = tasks_.at(busy->ticket).lease.id;
  send(std::move(progress));
  return take_effects();
}

AgentEffects Session::executor_finished(SlotId id, ExecutorFinished finished, std::string log,
                                        MonotonicMs now) {
  const auto* busy = std::get_if<Busy>(&slot(id).state);
  if (!busy || busy->told != finished.lease) return take_effects();
  const Ticket ticket = busy->ticket;
  Task& task = tasks_.at(ticket);
  slot(id).state = Idle{};
  keep_tail(log, limits::log_tail_bytes);
  if (finished.result.artifacts.empty()) {
    settle_with(ticket, ResultMessage{task.lease.id, std::move(finished.result), std::move(log)},
                now);
  } else {
    task.state = Storing{std::move(log)};
    task.has_files = true;
    emit(StoreFiles{ticket, task.output_dir, std::move(finished.result)});
  }
  start_jobs();
  return take_effects();
}

AgentEffects Session::executor_failed(SlotId id, FailureMessage failure) {
  const auto* busy = std::get_if<Busy>(&slot(id).state);
  if (!busy || busy->told != failure.lease) return take_effects();
  const Ticket ticket = busy->ticket;
  slot(id).state = Idle{};
  judge(ticket, std::move(failure.failure));
  start_jobs();
  return take_effects();
}

AgentEffects Session::executor_died(SlotId id, ExecutorDeath death, MonotonicMs now) {
  Slot& place = slot(id);
  place.affinity = 0;
  if (stopping()) {
    place.state = Ending{};
    return take_effects();
  }
  if (const auto* busy = std::get_if<Busy>(&place.state)) {
    const Ticket ticket = busy->ticket;
    place.state = Starting{};
    judge(ticket, failure_of(death));
    emit(StartExecutor{id});
  } else if (std::holds_alternative<Starting>(place.state)) {
    restart_later(place, id, death, now);
  } else {  // idle, or killed by us for a cancelled job
    place.state = Starting{};
    emit(StartExecutor{id});
  }
  start_jobs();
  return take_effects();
}

void Session::restart_later(Slot& place, SlotId id, const ExecutorDeath& death, MonotonicMs now) {
  place.start_failures += 1;
  if (place.start_failures >= limits::start_failures && !any_executor_works()) {
    std::string how = death.signal != 0 ? "signal " + std::to_string(death.signal)
                                        : "exit status " + std::to_string(death.exit_status);
    if (!death.problem.empty()) how = death.problem;
    std::string tail = death.log_tail;
    keep_tail(tail, 2'000);
    while (!tail.empty() && tail.back() == '\n') tail.pop_back();
    exit_with(AgentExit::executors_broken,
              "executor " + std::to_string(static_cast<std::uint32_t>(id)) + " died " +
                  std::to_string(place.start_failures) + " times while starting (" + how + ")" +
                  (tail.empty() ? ", without a word" : "; it wrote: " + tail));
    return;
  }
  const std::uint32_t doublings = std::min<std::uint32_t>(place.start_failures - 1, 16);
  const std::int64_t delay =
      std::min(limits::restart_first_ms << doublings, limits::restart_max_ms);
  place.state = Down{now + delay};
}

bool Session::any_executor_works() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& place) {
    return std::holds_alternative<Idle>(place.state) || std::holds_alternative<Busy>(place.state);
  });
}

AgentEffects Session::files_prepared(Ticket ticket, std::vector<LocalInput> inputs) {
  const auto task = tasks_.find(ticket);
  if (task == tasks_.end() || !std::holds_alternative<Preparing>(task->second.state)) {
    return take_effects();  // cancelled meanwhile
  }
  task->second.state = Pending{std::move(inputs)};
  pending_.insert(ticket);
  start_jobs();
  return take_effects();
}

AgentEffects Session::files_stored(Ticket ticket, JobResult result, MonotonicMs now) {
  const auto task = tasks_.find(ticket);
  if (task == tasks_.end()) return take_effects();
  auto* storing = std::get_if<Storing>(&task->second.state);
  if (!storing) return take_effects();
  ResultMessage message{task->second.lease.id, std::move(result), std::move(storing->log)};
  settle_with(ticket, std::move(message), now);
  return take_effects();
}

AgentEffects Session::files_failed(Ticket ticket, const Error& error, MonotonicMs now) {
  const auto task = tasks_.find(ticket);
  if (task == tasks_.end()) return take_effects();
  const auto& state = task->second.state;
  if (!std::holds_alternative<Preparing>(state) && !std::holds_alternative<Storing>(state)) {
    return take_effects();
  }
  if (error.code == ErrorCode::out_of_space) {
    hand_back(ticket);
    return take_effects();
  }
  JobFailure failure;
  failure.message = error.message;
  fail(ticket, std::move(failure), now);
  return take_effects();
}

// A disk that fills up makes jobs fail in any way, by a clear word or by a crash: the file service
// knows whether it did, and keeps what the job has left until it is asked to release it.
void Session::judge(Ticket ticket, JobFailure failure) {
  const bool says_no_room = failure.failure_class == FailureClass::no_space;
  if (says_no_room) failure.failure_class = FailureClass::error;
  tasks_.at(ticket).state = Judging{std::move(failure)};
  emit(JudgeFailure{ticket, says_no_room});
}

AgentEffects Session::failure_judged(Ticket ticket, bool no_room, MonotonicMs now) {
  const auto task = tasks_.find(ticket);
  if (task == tasks_.end()) return take_effects();
  auto* judging = std::get_if<Judging>(&task->second.state);
  if (!judging) return take_effects();
  if (no_room) {
    hand_back(ticket);
  } else {
    fail(ticket, std::move(judging->failure), now);
  }
  return take_effects();
}

AgentEffects Session::room_lost(std::string reason) {
  waits_for_ = std::move(reason);
  std::vector<Ticket> not_begun;
  for (const auto& [ticket, task] : tasks_) {
    const bool begun = !std::holds_alternative<Preparing>(task.state) &&
                       !std::holds_alternative<Pending>(task.state);
    if (!begun) not_begun.push_back(ticket);
  }
  for (const Ticket ticket : not_begun) hand_back(ticket);
  if (welcomed()) send_beat();
  return take_effects();
}

AgentEffects Session::room_found() {
  waits_for_.clear();
  if (welcomed()) send_beat();
  return take_effects();
}

void Session::hand_back(Ticket ticket) {
  Task& task = tasks_.at(ticket);
  const LeaseId lease = task.lease.id;
  task.has_files = true;
  stop_task(ticket);
  send(LeaseReturned{lease});
}

void Session::fail(Ticket ticket, JobFailure failure, MonotonicMs now) {
  keep_tail(failure.log_tail, limits::log_tail_bytes);
  if (failure.message.size() > limits::error_text_bytes) {
    failure.message.resize(limits::error_text_bytes);
  }
  Task& task = tasks_.at(ticket);
  task.has_files = true;  // a job that ended badly may have left an output folder
  settle_with(ticket, FailureMessage{task.lease.id, std::move(failure)}, now);
}

void Session::settle_with(Ticket ticket, Message message, MonotonicMs now) {
  Task& task = tasks_.at(ticket);
  release(ticket, task);
  pending_.erase(ticket);
  const std::size_t bytes = bytes_of(message);
  unsettled_ += 1;
  unsettled_bytes_ += bytes;
  if (welcomed()) {
    resends_.emplace_back(now + limits::resend_ms, ticket);
    send(message);
  }
  task.state = Unsettled{std::move(message), bytes};
}

void Session::release(Ticket ticket, Task& task) {
  if (std::exchange(task.has_files, false)) emit(ReleaseFiles{ticket, task.output_dir});
}

void Session::stop_task(Ticket ticket) {
  const auto found = tasks_.find(ticket);
  PREFGRID_CHECK(found != tasks_.end(), "stop_task without a task");
  Task& task = found->second;
  if (const auto* running = std::get_if<Running>(&task.state)) {
    slot(running->slot).state = Ending{};
    emit(KillExecutor{running->slot});
    task.has_files = true;
  } else if (const auto* unsettled = std::get_if<Unsettled>(&task.state)) {
    unsettled_ -= 1;
    unsettled_bytes_ -= unsettled->bytes;
  }
  release(ticket, task);
  pending_.erase(ticket);
  by_job_.erase(task.lease.id.job);
  tasks_.erase(found);
}

// Three rounds over the idle executors, so that nobody takes a job that another idle one has the
// model for: first their own, then what is resident nowhere, then anything rather than idling.
void Session::start_jobs() {
  if (stopping() || pending_.empty()) return;
  if (unsettled_ >= limits::unsettled_results || unsettled_bytes_ >= limits::unsettled_bytes) {
    return;  // the coordinator must take some results first
  }
  const auto resident_elsewhere = [this](std::uint64_t affinity) {
    return affinity != 0 && std::any_of(slots_.begin(), slots_.end(), [&](const Slot& place) {
             return place.affinity == affinity;
           });
  };
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < slots_.size() && !pending_.empty(); ++i) {
      if (!std::holds_alternative<Idle>(slots_[i].state)) continue;
      const auto fits = [&](Ticket ticket) {
        const std::uint64_t affinity = tasks_.at(ticket).lease.affinity;
        if (round == 0) return affinity != 0 && affinity == slots_[i].affinity;
        return round == 2 || !resident_elsewhere(affinity);
      };
      const auto chosen = std::find_if(pending_.begin(), pending_.end(), fits);
      if (chosen != pending_.end()) run_on(SlotId{i}, *chosen);
    }
  }
}

void Session::run_on(SlotId id, Ticket ticket) {
  Task& task = tasks_.at(ticket);
  Slot& place = slot(id);
  RunJob job;
  job.lease = task.lease.id;
  job.spec = task.lease.spec;
  job.inputs = std::move(std::get<Pending>(task.state).inputs);
  job.output_dir = task.output_dir;
  task.state = Running{id};
  pending_.erase(ticket);
  place.state = Busy{ticket, job.lease};
  place.affinity = task.lease.affinity;
  emit(RunOnExecutor{id, std::move(job)});
}

}  // namespace prefgrid
