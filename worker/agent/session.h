// The agent's side of the protocol as a pure state machine: an event and `now` come in, effects go
// out as plain data. It never reads a clock, a socket or a file. The loop (agent_loop.h) owns one
// session, feeds it and applies its effects in order.
//
// A lease becomes a Task with a ticket that only this process knows. If the coordinator leases the
// same job again under a higher attempt (it thought the old lease lost), the task takes over the
// new attempt: a computation is never thrown away for a lost message, and a job never runs twice
// here.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/messages.h"
#include "worker/agent/agent_limits.h"

namespace prefgrid {

enum class SlotId : std::uint32_t {};  // an executor's place, 0 … executors - 1
enum class Ticket : std::uint64_t {};  // a task of this agent; grows with arrival

// Exit codes of prefgrid-worker.
enum class AgentExit : int {
  asked = 0,             // a signal, or the life-line closed
  failed = 1,            // anything unexpected
  bad_arguments = 2,     // or no executor binary
  refused = 3,           // the coordinator does not want this worker
  executors_broken = 4,  // no executor starts
};

// --- effects ---
struct SendControl {
  Message message;
};
struct UseBulkEndpoint {
  std::string endpoint;  // as the welcome says it
};
struct PrepareFiles {  // answered by files_prepared or files_failed
  Ticket ticket{};
  std::vector<ResolvedInput> inputs;
};
struct StoreFiles {  // answered by files_stored or files_failed
  Ticket ticket{};
  std::string output_dir;
  JobResult result;
};
struct JudgeFailure {  // is it for want of room on the disk? Answered by failure_judged
  Ticket ticket{};
  bool says_no_room = false;  // the executor itself does
};
struct ReleaseFiles {  // also ends whatever is under way for the ticket
  Ticket ticket{};
  std::string output_dir;
};
struct StartExecutor {
  SlotId slot{};
};
struct KillExecutor {  // answered by executor_died
  SlotId slot{};
};
struct RunOnExecutor {
  SlotId slot{};
  RunJob job;
};
struct ExitAgent {
  AgentExit code = AgentExit::asked;
  std::string message;  // one line for a person
};
using AgentEffect =
    std::variant<SendControl, UseBulkEndpoint, PrepareFiles, StoreFiles, JudgeFailure, ReleaseFiles,
                 StartExecutor, KillExecutor, RunOnExecutor, ExitAgent>;
using AgentEffects = std::vector<AgentEffect>;

// How an executor process ended.
struct ExecutorDeath {
  int signal = 0;        // 0: it exited
  int exit_status = 0;   // if it exited
  std::string log_tail;  // what it wrote last
  std::string problem;   // why the agent ended it, "" if it did not
};

struct SessionConfig {
  std::string name;
  std::string host;
  std::uint64_t pid = 0;
  std::uint32_t executors = 1;
  std::string software_version;
  std::string output_root;  // jobs write to folders under it
};

class Session {
 public:
  explicit Session(SessionConfig config);

  AgentEffects start();
  AgentEffects on_message(Message message, MonotonicMs now);  // from the coordinator
  AgentEffects on_damaged_frame(const Error& error, MonotonicMs now);
  AgentEffects on_send_failed(MonotonicMs now);  // a SendControl could not be queued
  AgentEffects on_tick(MonotonicMs now);         // at next_deadline() or at any other time

  AgentEffects executor_ready(SlotId slot, ExecutorReady ready, MonotonicMs now);
  AgentEffects executor_progress(SlotId slot, Progress progress);
  AgentEffects executor_finished(SlotId slot, ExecutorFinished finished, std::string log,
                                 MonotonicMs now);
  AgentEffects executor_failed(SlotId slot, FailureMessage failure);
  AgentEffects executor_died(SlotId slot, ExecutorDeath death, MonotonicMs now);

  AgentEffects files_prepared(Ticket ticket, std::vector<LocalInput> inputs);
  AgentEffects files_stored(Ticket ticket, JobResult result, MonotonicMs now);
  AgentEffects files_failed(Ticket ticket, const Error& error, MonotonicMs now);
  AgentEffects failure_judged(Ticket ticket, bool no_room, MonotonicMs now);

  // The disk of the job folders is full: what has not begun is handed back uncharged and nothing
  // is begun, what runs goes on. `reason`: one line for a person.
  AgentEffects room_lost(std::string reason);
  AgentEffects room_found();

  AgentEffects shutdown(MonotonicMs now);  // SIGTERM: hand everything back

  std::optional<MonotonicMs> next_deadline() const;
  void check_invariants() const;

  bool welcomed() const { return std::holds_alternative<Welcomed>(connection_); }
  std::size_t tasks() const { return tasks_.size(); }

 private:
  // Towards the coordinator.
  struct Unready {};  // no executor has said what it can run
  struct Greeting {
    MonotonicMs sent{};
    std::int64_t retry_ms = 0;
    bool leases_arrived = false;  // they crossed the hello: it did not list them
    bool second = false;          // already repeated for that reason
  };
  struct Welcomed {
    std::int64_t heartbeat_ms = limits::heartbeat_ms;
    MonotonicMs last_beat{};  // a heartbeat was sent; the coordinator answers each
    MonotonicMs last_heard{};
  };
  struct Stopping {
    MonotonicMs deadline{};
    bool answered = false;  // the coordinator knows
  };
  struct Exited {};
  using Connection = std::variant<Unready, Greeting, Welcomed, Stopping, Exited>;

  // A task.
  struct Preparing {};
  struct Pending {
    std::vector<LocalInput> inputs;
  };
  struct Running {
    SlotId slot{};
  };
  struct Judging {
    JobFailure failure;
  };
  struct Storing {
    std::string log;
  };
  struct Unsettled {
    Message message;
    std::size_t bytes = 0;
  };
  struct Task {
    Lease lease;
    std::string output_dir;
    bool has_files = false;  // the file service knows its ticket
    std::variant<Preparing, Pending, Running, Judging, Storing, Unsettled> state;
  };

  // An executor.
  struct Starting {};
  struct Idle {};
  struct Busy {
    Ticket ticket{};
    LeaseId told;  // the lease id that the executor knows; the task's may be newer
  };
  struct Ending {};  // killed, its death not yet seen
  struct Down {
    MonotonicMs restart{};
  };
  struct Slot {
    std::variant<Starting, Idle, Busy, Ending, Down> state;
    std::uint64_t affinity = 0;  // of its last job; 0: none
    std::uint32_t start_failures = 0;
  };

  AgentEffects take_effects();
  void emit(AgentEffect effect) { effects_.push_back(std::move(effect)); }
  void send(Message message);
  void say_hello(MonotonicMs now, std::int64_t retry_ms, bool second);
  WorkerHello hello() const;
  void exit_with(AgentExit code, std::string message);
  bool stopping() const;

  void on_welcome(const Welcome& welcome, MonotonicMs now);
  void exit_if_done();
  void on_refused(const Refused& refused);
  void on_lease(Lease lease);
  void adopt(Ticket ticket, Attempt attempt);
  void on_settled(const LeaseId& lease);
  void on_cancel(const LeaseId& lease);

  Task* find(const LeaseId& lease, Ticket* ticket);
  Slot& slot(SlotId id);
  void stop_task(Ticket ticket);  // forgets it; kills its executor if it runs
  void hand_back(Ticket ticket);  // uncharged
  void judge(Ticket ticket, JobFailure failure);
  void send_beat();
  void settle_with(Ticket ticket, Message message, MonotonicMs now);  // result or failure
  void fail(Ticket ticket, JobFailure failure, MonotonicMs now);
  void release(Ticket ticket, Task& task);
  void restart_later(Slot& place, SlotId id, const ExecutorDeath& death, MonotonicMs now);
  bool any_executor_works() const;

  void start_jobs();
  void run_on(SlotId id, Ticket ticket);

  SessionConfig config_;
  Connection connection_;
  std::optional<ExecutorReady> abilities_;  // of the executors: all run the same binary
  std::set<KindVersion> kinds_;
  std::vector<Slot> slots_;
  std::map<Ticket, Task> tasks_;
  std::map<JobKey, Ticket> by_job_;                     // at most one task a job
  std::set<Ticket> pending_;                            // tasks in state Pending
  std::deque<std::pair<MonotonicMs, Ticket>> resends_;  // due times of unsettled tasks, in order
  std::size_t unsettled_ = 0;
  std::size_t unsettled_bytes_ = 0;
  std::uint64_t next_ticket_ = 1;
  std::string waits_for_;  // "": takes leases
  AgentEffects effects_;
};

}  // namespace prefgrid
