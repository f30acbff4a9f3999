#include "worker/agent/agent_loop.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "common/text.h"
#include "common/transport.h"
#include "worker/agent/bulk_thread.h"
#include "worker/agent/supervisor.h"

namespace prefgrid {
namespace {

class AgentLoop {
 public:
  AgentLoop(const AgentOptions& options, DealerSocket control, BulkThread& bulk,
            const SessionConfig& session)
      : options_(options),
        control_(std::move(control)),
        bulk_(bulk),
        supervisor_(options.launch),
        session_(session) {}

  ExitAgent run();

 private:
  void apply(AgentEffects effects);
  void apply_one(AgentEffect effect);
  void send(const Message& message);
  bool drain_control();
  bool drain_executors();
  bool drain_files();
  void take(ExecutorEvent event);
  void wait(bool busy);
  void note_connection();

  const AgentOptions& options_;
  DealerSocket control_;
  BulkThread& bulk_;
  Supervisor supervisor_;
  Session session_;
  bool sent_ = false;  // since the last look at the control socket
  bool was_welcomed_ = false;
  bool stopping_ = false;
  std::optional<ExitAgent> exit_;
};

void AgentLoop::apply(AgentEffects effects) {
  for (AgentEffect& effect : effects) apply_one(std::move(effect));
}

void AgentLoop::apply_one(AgentEffect effect) {
  if (auto* message = std::get_if<SendControl>(&effect)) {
    send(message->message);
  } else if (auto* run = std::get_if<RunOnExecutor>(&effect)) {
    supervisor_.run(run->slot, run->job);
  } else if (auto* start = std::get_if<StartExecutor>(&effect)) {
    supervisor_.start(start->slot);
  } else if (auto* kill = std::get_if<KillExecutor>(&effect)) {
    supervisor_.kill(kill->slot);
  } else if (auto* exit = std::get_if<ExitAgent>(&effect)) {
    exit_ = std::move(*exit);
  } else if (auto* prepare = std::get_if<PrepareFiles>(&effect)) {
    bulk_.post(std::move(*prepare));
  } else if (auto* store = std::get_if<StoreFiles>(&effect)) {
    bulk_.post(std::move(*store));
  } else if (auto* judge = std::get_if<JudgeFailure>(&effect)) {
    bulk_.post(std::move(*judge));
  } else if (auto* release = std::get_if<ReleaseFiles>(&effect)) {
    bulk_.post(std::move(*release));
  } else if (auto* endpoint = std::get_if<UseBulkEndpoint>(&effect)) {
    bulk_.post(std::move(*endpoint));
  }
}

void AgentLoop::send(const Message& message) {
  sent_ = true;
  const bool queued = control_.try_send(encode(message));
  if (!queued) apply(session_.on_send_failed(monotonic_now()));
}

bool AgentLoop::drain_control() {
  sent_ = false;
  for (std::size_t count = 0; count < limits::events_per_drain; ++count) {
    const auto frame = control_.try_receive();
    if (!frame) return count > 0;
    auto message = decode_message(*frame);
    if (message) {
      apply(session_.on_message(*std::move(message), monotonic_now()));
    } else {
      spdlog::warn("a message of the coordinator was refused: {}", message.error().message);
      apply(session_.on_damaged_frame(message.error(), monotonic_now()));
    }
    if (exit_) return true;
  }
  return true;
}

void AgentLoop::take(ExecutorEvent event) {
  const MonotonicMs now = monotonic_now();
  const SlotId slot = event.slot;
  if (auto* ready = std::get_if<ExecutorReady>(&event.what)) {
    spdlog::debug("executor {} is ready", static_cast<std::uint32_t>(slot));
    apply(session_.executor_ready(slot, std::move(*ready), now));
  } else if (auto* progress = std::get_if<Progress>(&event.what)) {
    apply(session_.executor_progress(slot, *progress));
  } else if (auto* done = std::get_if<ExecutorJobDone>(&event.what)) {
    apply(session_.executor_finished(slot, std::move(done->finished), std::move(done->log), now));
  } else if (auto* failure = std::get_if<FailureMessage>(&event.what)) {
    spdlog::warn("job {} failed: {}", failure->lease.job.short_hex(),
                 quoted(failure->failure.message));
    apply(session_.executor_failed(slot, std::move(*failure)));
  } else if (auto* death = std::get_if<ExecutorDeath>(&event.what)) {
    spdlog::warn("executor {} ended: {}{}", static_cast<std::uint32_t>(slot),
                 death->signal != 0 ? "signal " + std::to_string(death->signal)
                                    : "exit status " + std::to_string(death->exit_status),
                 death->problem.empty() ? "" : ", " + death->problem);
    apply(session_.executor_died(slot, std::move(*death), now));
  }
}

bool AgentLoop::drain_executors() {
  std::vector<ExecutorEvent> events = supervisor_.poll();
  for (ExecutorEvent& event : events) take(std::move(event));
  return !events.empty();
}

bool AgentLoop::drain_files() {
  std::vector<FileReport> reports = bulk_.take_reports();
  for (FileReport& report : reports) {
    const MonotonicMs now = monotonic_now();
    if (auto* prepared = std::get_if<FilesPrepared>(&report)) {
      apply(session_.files_prepared(prepared->ticket, std::move(prepared->inputs)));
    } else if (auto* stored = std::get_if<FilesStored>(&report)) {
      apply(session_.files_stored(stored->ticket, std::move(stored->result), now));
    } else if (auto* failed = std::get_if<FilesFailed>(&report)) {
      spdlog::warn("files of a job: {}", failed->error.message);
      apply(session_.files_failed(failed->ticket, failed->error, now));
    } else if (auto* judged = std::get_if<FailureJudged>(&report)) {
      apply(session_.failure_judged(judged->ticket, judged->no_room, now));
    } else if (auto* lost = std::get_if<RoomLost>(&report)) {
      spdlog::warn("{}: waiting, nothing is charged", lost->reason);
      apply(session_.room_lost(std::move(lost->reason)));
    } else if (std::holds_alternative<RoomFound>(report)) {
      spdlog::info("there is room on the disk again: going on");
      apply(session_.room_found());
    }
  }
  return !reports.empty();
}

void AgentLoop::note_connection() {
  if (session_.welcomed() == was_welcomed_) return;
  was_welcomed_ = session_.welcomed();
  if (was_welcomed_) {
    spdlog::info("joined the coordinator at {} as {}", options_.control_endpoint, options_.name);
  } else if (!exit_ && !stopping_) {
    spdlog::info("no word from the coordinator at {}; the jobs go on", options_.control_endpoint);
  }
}

void AgentLoop::wait(bool busy) {
  std::vector<int> descriptors{options_.signal_descriptor};
  if (options_.life_line_descriptor >= 0) descriptors.push_back(options_.life_line_descriptor);
  const std::size_t special = descriptors.size();
  descriptors.push_back(control_.poll_fd());
  descriptors.push_back(bulk_.descriptor());
  for (const int descriptor : supervisor_.descriptors()) descriptors.push_back(descriptor);

  std::optional<std::chrono::milliseconds> timeout;
  if (const auto deadline = session_.next_deadline()) {
    timeout = std::chrono::milliseconds(std::max<std::int64_t>(*deadline - monotonic_now(), 0));
  }
  if (busy) timeout = std::chrono::milliseconds(0);
  for (const std::size_t index : wait_readable(descriptors, timeout)) {
    if (index >= special) continue;
    if (index == 1) {
      exit_ = ExitAgent{AgentExit::asked, "the life-line closed: stopped"};
    } else {
      char record[128];  // one signalfd_siginfo
      if (::read(options_.signal_descriptor, record, sizeof record) > 0) {
        spdlog::info("asked to stop: handing the leases back");
        stopping_ = true;
        apply(session_.shutdown(monotonic_now()));
      }
    }
  }
}

ExitAgent AgentLoop::run() {
  apply(session_.start());
  while (!exit_) {
    bool busy = drain_control();
    busy = drain_executors() || busy;
    busy = drain_files() || busy;
    if (const auto deadline = session_.next_deadline(); deadline && !exit_) {
      if (const MonotonicMs now = monotonic_now(); now - *deadline >= 0) {
        apply(session_.on_tick(now));
      }
    }
    note_connection();
    // Sending may have taken the control socket's edge: look once more before waiting.
    if (!exit_) wait(busy || sent_);
  }
  return *exit_;
}

Result<FileService> open_files(const AgentOptions& options) {
  PREFGRID_ASSIGN(auto cache, ArtifactCache::open(options.cache_folder, options.cache_bytes));
  PREFGRID_ASSIGN(auto folders, JobFolders::make(cache.folder()));
  return FileService(std::move(cache), std::move(folders));
}

// Before there is anything to hand back; looks for as long as one should wait for the disk.
bool told_to_stop(const AgentOptions& options) {
  std::vector<int> descriptors{options.signal_descriptor};
  if (options.life_line_descriptor >= 0) descriptors.push_back(options.life_line_descriptor);
  return !wait_readable(descriptors, std::chrono::milliseconds(limits::room_first_ms)).empty();
}

// nullopt: told to stop, before there was room.
Result<std::optional<FileService>> wait_for_files(const AgentOptions& options) {
  for (bool said = false;; said = true) {
    auto opened = open_files(options);
    if (opened) return std::optional(*std::move(opened));
    if (opened.error().code != ErrorCode::out_of_space) return opened.error();
    if (!said) spdlog::warn("{}: waiting for room", opened.error().message);
    if (told_to_stop(options)) return std::optional<FileService>();
  }
}

}  // namespace

ExitAgent run_agent(const AgentOptions& options) {
  auto opened = wait_for_files(options);
  if (!opened) return {AgentExit::bad_arguments, opened.error().message};
  if (!opened->has_value()) return {AgentExit::asked, "stopped"};
  FileService files = **std::move(opened);

  SessionConfig session;
  session.name = options.name;
  session.host = options.host;
  session.pid = static_cast<std::uint64_t>(::getpid());
  session.executors = options.executors;
  session.software_version = PREFGRID_VERSION;
  session.output_root = files.output_root();

  TransportContext context;
  auto control = DealerSocket::connect(context, options.control_endpoint);
  if (!control) return {AgentExit::bad_arguments, control.error().message};
  BulkThread bulk(context, std::move(files), options.control_endpoint);
  // Destroyed before the bulk thread: executors end before their folders go.
  AgentLoop loop(options, *std::move(control), bulk, session);
  return loop.run();
}

}  // namespace prefgrid
