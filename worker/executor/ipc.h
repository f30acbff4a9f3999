// The executor's end of its channel to the agent: descriptor 3, a socket pair, whose frames are
// ExecutorMessages (schemas/protocol.capnp). Free of torch: the tests' fake executor uses it too.
//
// The contract, for both ends:
//   - The executor says `ready` once, then takes one `run` at a time and answers it with `finished`
//     or `failed`; `progress` may come between.
//   - Before it answers it flushes stdout and stderr: what the agent then finds in their pipe is
//     that job's log.
//   - It makes `output_dir` itself, and leaves it there only if the job left artefacts.
//   - When the channel closes, the agent is gone: the process ends at once, whatever it computes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/messages.h"
#include "common/result.h"

namespace prefgrid {

inline constexpr int executor_channel_descriptor = 3;
inline constexpr std::chrono::milliseconds progress_interval{100};

// A reader thread waits on the channel for all of the process's life; send() and next() are for the
// main thread. Lives as long as the process: its thread is never joined.
class ExecutorChannel {
 public:
  // invalid_input if the descriptor is no socket: somebody started the executor by hand.
  static Result<std::shared_ptr<ExecutorChannel>> open(
      int descriptor = executor_channel_descriptor);

  // The next job; nullopt: stop.
  std::optional<RunJob> next();
  void send(const ExecutorMessage& message);  // ends the process if the agent is gone

 private:
  explicit ExecutorChannel(int descriptor) : descriptor_(descriptor) {}
  void read_loop();

  int descriptor_;
  std::mutex mutex_;  // of the two below
  std::condition_variable arrived_;
  std::deque<std::optional<RunJob>> jobs_;
};

using ProgressReport = std::function<void(std::uint64_t step, std::uint64_t total_steps,
                                          std::optional<double> loss_nats)>;
// Errors are the job's failure; out_of_memory and out_of_space have classes of their own.
using JobHandler = std::function<Result<JobResult>(const RunJob&, const ProgressReport&)>;

// Says ready, then runs jobs until told to stop. Exceptions of the handler are failures of the job:
// std::bad_alloc is out of memory. At most ten progress messages a second leave.
void serve_jobs(ExecutorChannel& channel, const ExecutorReady& ready, const JobHandler& handler);

// An empty folder, whatever was there.
Result<void> make_output_dir(const std::string& path);
// Removes it if it is empty, else leaves it.
void drop_output_dir_if_empty(const std::string& path);

}  // namespace prefgrid
