#include "worker/agent/supervisor.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "common/check.h"

namespace prefgrid {
namespace {

bool readable(int descriptor, int timeout_ms = 0) {
  pollfd entry{descriptor, POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) > 0;
}

// Between the closing of a dying process's descriptors and the moment at which it can be reaped.
constexpr int dying_ms = 200;

// Everything in the pipe, but not for ever: an executor may write faster than we read.
// False: no writer is left.
bool drain_log(int descriptor, LogRing& log) {
  std::array<char, 64 << 10> buffer;
  for (int round = 0; round < 32; ++round) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count > 0) {
      log.append({buffer.data(), static_cast<std::size_t>(count)});
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

}  // namespace

void Supervisor::start(SlotId slot) {
  PREFGRID_CHECK(!executors_.contains(slot), "start() of a running executor");
  auto process = ExecutorProcess::spawn(launch_);
  if (!process) {
    ExecutorDeath death;
    death.problem = process.error().message;
    failed_starts_.push_back({slot, std::move(death)});
    return;
  }
  executors_.emplace(slot, Executor{*std::move(process), {}, LogRing{limits::log_tail_bytes}, {}});
}

void Supervisor::end(Executor& executor, const std::string& problem) {
  if (executor.problem.empty()) executor.problem = problem;
  executor.socket_open = false;  // whatever it still says is not wanted
  executor.process.kill();
}

void Supervisor::kill(SlotId slot, const std::string& problem) {
  const auto found = executors_.find(slot);
  if (found != executors_.end()) end(found->second, problem);
}

void Supervisor::run(SlotId slot, const RunJob& job) {
  const auto found = executors_.find(slot);
  if (found == executors_.end()) return;  // its death is on the way
  // The old log belongs to no job: what an executor writes while idle or starting.
  Executor& executor = found->second;
  if (executor.log_open) executor.log_open = drain_log(executor.process.log(), executor.log);
  executor.log.take();
  const auto written = write_frame(executor.process.socket(), encode(ExecutorMessage(job)));
  // Nobody reads at the other end: it has died (then it says how itself) or hangs.
  if (!written && !readable(executor.process.pidfd())) {
    end(executor, "the executor took no more messages: " + written.error().message);
  }
}

std::vector<int> Supervisor::descriptors() const {
  std::vector<int> result;
  for (const auto& [slot, executor] : executors_) {
    if (executor.socket_open) result.push_back(executor.process.socket());
    if (executor.log_open) result.push_back(executor.process.log());
    result.push_back(executor.process.pidfd());
  }
  return result;
}

void Supervisor::read_socket(SlotId slot, Executor& executor, std::vector<ExecutorEvent>& events) {
  const auto open = executor.frames.fill(executor.process.socket());
  if (!open) return end(executor, "reading from the executor failed: " + open.error().message);
  if (!*open) {
    executor.socket_open = false;
    const bool dying = readable(executor.process.pidfd(), dying_ms);
    if (!dying) end(executor, "the executor closed its channel to the agent");
    return;
  }
  for (;;) {
    auto frame = executor.frames.next();
    if (!frame) return end(executor, "the executor sent nonsense: " + frame.error().message);
    if (!frame->has_value()) return;
    auto message = decode_executor(**frame);
    if (!message) return end(executor, "the executor sent nonsense: " + message.error().message);
    take_message(slot, executor, *std::move(message), events);
  }
}

void Supervisor::take_message(SlotId slot, Executor& executor, ExecutorMessage message,
                              std::vector<ExecutorEvent>& events) {
  const auto job_log = [&executor] {
    // It flushes its streams before it reports: all that the job wrote is in the pipe.
    if (executor.log_open) executor.log_open = drain_log(executor.process.log(), executor.log);
    return executor.log.take();
  };
  if (auto* ready = std::get_if<ExecutorReady>(&message)) {
    events.push_back({slot, std::move(*ready)});
  } else if (auto* progress = std::get_if<Progress>(&message)) {
    events.push_back({slot, *progress});
  } else if (auto* finished = std::get_if<ExecutorFinished>(&message)) {
    events.push_back({slot, ExecutorJobDone{std::move(*finished), job_log()}});
  } else if (auto* failure = std::get_if<FailureMessage>(&message)) {
    failure->failure.log_tail = job_log();
    events.push_back({slot, std::move(*failure)});
  } else {
    end(executor, "the executor sent a message that only agents send");
  }
}

std::vector<ExecutorEvent> Supervisor::poll() {
  std::vector<ExecutorEvent> events = std::exchange(failed_starts_, {});
  for (auto entry = executors_.begin(); entry != executors_.end();) {
    const SlotId slot = entry->first;
    Executor& executor = entry->second;
    const int socket = executor.socket_open ? executor.process.socket() : -1;
    const int log = executor.log_open ? executor.process.log() : -1;
    std::array<pollfd, 3> ready{
        {{socket, POLLIN, 0}, {log, POLLIN, 0}, {executor.process.pidfd(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), 0) <= 0) {
      ++entry;
      continue;
    }
    const bool ended = ready[2].revents != 0;
    if (ready[0].revents != 0) read_socket(slot, executor, events);
    while (ended && executor.socket_open && readable(executor.process.socket())) {
      read_socket(slot, executor, events);
    }
    if (ready[1].revents != 0 && executor.log_open) {
      executor.log_open = drain_log(executor.process.log(), executor.log);
    }
    if (!ended) {
      ++entry;
      continue;
    }
    const ExecutorProcess::Ending ending = executor.process.reap();
    if (executor.log_open) drain_log(executor.process.log(), executor.log);
    events.push_back({slot, ExecutorDeath{ending.signal, ending.exit_status, executor.log.take(),
                                          executor.problem}});
    entry = executors_.erase(entry);
  }
  return events;
}

}  // namespace prefgrid
