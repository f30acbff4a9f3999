#include "worker/executor/ipc.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <utility>

#include "common/files.h"
#include "common/pipe_frames.h"

namespace prefgrid {
namespace {

// Without destructors and exit handlers: another thread may be in the middle of a computation.
[[noreturn]] void end_now(int status) {
  ::_exit(status);
}

FailureMessage failed(const LeaseId& lease, FailureClass failure_class, std::string message) {
  FailureMessage failure;
  failure.lease = lease;
  failure.failure.failure_class = failure_class;
  failure.failure.message = std::move(message);
  return failure;
}

FailureClass class_of(ErrorCode code) {
  if (code == ErrorCode::out_of_memory) return FailureClass::out_of_memory;
  if (code == ErrorCode::out_of_space) return FailureClass::no_space;
  return FailureClass::error;
}

ExecutorMessage outcome_of(const RunJob& job, const JobHandler& handler,
                           const ProgressReport& report) {
  try {
    Result<JobResult> result = handler(job, report);
    if (result) return ExecutorFinished{job.lease, *std::move(result)};
    const Error& error = result.error();
    return failed(job.lease, class_of(error.code), error.message);
  } catch (const std::bad_alloc&) {
    return failed(job.lease, FailureClass::out_of_memory,
                  "memory ran out in a job of kind " + job.spec.kind);
  } catch (const std::exception& exception) {
    return failed(job.lease, FailureClass::error, exception.what());
  } catch (...) {
    return failed(job.lease, FailureClass::error, "an unknown exception");
  }
}

ProgressReport limited_report(ExecutorChannel& channel, const LeaseId& lease) {
  using Clock = std::chrono::steady_clock;
  return [&channel, lease, next = Clock::time_point{}](std::uint64_t step, std::uint64_t total,
                                                       std::optional<double> loss) mutable {
    const Clock::time_point now = Clock::now();
    if (now < next) return;
    next = now + progress_interval;
    channel.send(Progress{lease, step, total, loss});
  };
}

}  // namespace

Result<std::shared_ptr<ExecutorChannel>> ExecutorChannel::open(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) {
    return invalid_input(
        "this program is started by prefgrid-worker, which speaks to it over descriptor " +
        std::to_string(descriptor) + "; it does nothing when started by hand");
  }
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a second guard; the closing channel is the first
  std::shared_ptr<ExecutorChannel> channel(new ExecutorChannel(descriptor));
  std::thread([channel] { channel->read_loop(); }).detach();
  return channel;
}

void ExecutorChannel::read_loop() {
  FrameReader frames;
  for (;;) {
    const auto open = frames.fill(descriptor_);
    if (!open || !*open) end_now(0);
    for (;;) {
      const auto frame = frames.next();
      if (!frame) {
        std::fprintf(stderr, "the agent sent nonsense: %s\n", frame.error().message.c_str());
        end_now(1);
      }
      if (!frame->has_value()) break;
      auto message = decode_executor(**frame);
      if (!message) {
        std::fprintf(stderr, "the agent sent nonsense: %s\n", message.error().message.c_str());
        end_now(1);
      }
      const std::lock_guard lock(mutex_);
      if (auto* job = std::get_if<RunJob>(&*message)) {
        jobs_.emplace_back(std::move(*job));
      } else if (std::holds_alternative<StopExecutor>(*message)) {
        jobs_.emplace_back(std::nullopt);
      }
      arrived_.notify_one();
    }
  }
}

std::optional<RunJob> ExecutorChannel::next() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return !jobs_.empty(); });
  std::optional<RunJob> job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

void ExecutorChannel::send(const ExecutorMessage& message) {
  if (!write_frame(descriptor_, encode(message))) end_now(0);
}

void serve_jobs(ExecutorChannel& channel, const ExecutorReady& ready, const JobHandler& handler) {
  channel.send(ready);
  while (const std::optional<RunJob> job = channel.next()) {
    const ExecutorMessage outcome = outcome_of(*job, handler, limited_report(channel, job->lease));
    std::cout.flush();
    std::fflush(nullptr);
    channel.send(outcome);
  }
}

Result<void> make_output_dir(const std::string& path) {
  std::error_code problem;
  std::filesystem::remove_all(path, problem);
  if (!problem) std::filesystem::create_directories(path, problem);
  if (problem) return os_error(problem.value(), "cannot make " + path);
  return {};
}

void drop_output_dir_if_empty(const std::string& path) {
  ::rmdir(path.c_str());  // fails if something is in it
}

}  // namespace prefgrid
