// The agent's executors: starts them, speaks to them, keeps the last of what each wrote, and says
// when one is gone. It decides nothing: restarts and failures are the session's. Owned by the
// loop's thread.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "common/messages.h"
#include "common/pipe_frames.h"
#include "common/result.h"
#include "worker/agent/executor_process.h"
#include "worker/agent/log_ring.h"
#include "worker/agent/session.h"

namespace prefgrid {

struct ExecutorJobDone {
  ExecutorFinished finished;
  std::string log;  // what the job wrote, its last 64 KiB
};
// FailureMessage: its log_tail is filled in here.
struct ExecutorEvent {
  SlotId slot{};
  std::variant<ExecutorReady, Progress, ExecutorJobDone, FailureMessage, ExecutorDeath> what;
};

class Supervisor {
 public:
  explicit Supervisor(ExecutorLaunch launch) : launch_(std::move(launch)) {}

  // An error (no memory, no such program) is reported as a death by the next poll().
  void start(SlotId slot);
  void kill(SlotId slot, const std::string& problem = "");
  void run(SlotId slot, const RunJob& job);  // a broken pipe becomes a death

  // Readable when poll() has something to do.
  std::vector<int> descriptors() const;
  // Takes what is there; never blocks. In the order in which each executor said it; a death is the
  // last event of its process.
  std::vector<ExecutorEvent> poll();

  std::size_t alive() const { return executors_.size(); }

 private:
  struct Executor {
    ExecutorProcess process;
    FrameReader frames;
    LogRing log{limits::log_tail_bytes};
    std::string problem;  // why the agent ended it
    bool socket_open = true;
    bool log_open = true;
  };

  void read_socket(SlotId slot, Executor& executor, std::vector<ExecutorEvent>& events);
  void take_message(SlotId slot, Executor& executor, ExecutorMessage message,
                    std::vector<ExecutorEvent>& events);
  void end(Executor& executor, const std::string& problem);

  ExecutorLaunch launch_;
  std::map<SlotId, Executor> executors_;
  std::vector<ExecutorEvent> failed_starts_;
};

}  // namespace prefgrid
