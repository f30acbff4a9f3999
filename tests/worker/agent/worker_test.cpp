// The real prefgrid-worker with the fake executor, against a scripted coordinator.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/agent/scripted_coordinator.h"
#include "worker/agent/session.h"

namespace prefgrid {
namespace {

JobKey key(int number) {
  JobKey result;
  result.bytes[0] = static_cast<std::uint8_t>(number);
  return result;
}

Lease lease(int job, const std::string& script) {
  Lease result;
  result.id = {key(job), 1};
  result.spec.kind = "test";
  result.spec.parameters["script"] = script;
  return result;
}

// A worker with one fake executor, and the coordinator that it looks for.
class Stage {
 public:
  explicit Stage(std::vector<std::string> more = {}) : coordinator(folder.path().string()) {
    ::setenv("PREFGRID_FAKE_KINDS", "test:1", 1);
    std::vector<std::string> argv{PREFGRID_BUILD_DIR "/prefgrid-worker",
                                  "--connect",
                                  coordinator.endpoint(),
                                  "--executors",
                                  "1",
                                  "--executor",
                                  PREFGRID_BUILD_DIR "/tests/prefgrid-fake-executor",
                                  "--cache",
                                  (folder.path() / "cache").string(),
                                  "--name",
                                  "w1"};
    for (std::string& argument : more) argv.push_back(std::move(argument));
    worker = std::make_unique<Process>(std::move(argv), log_file());
  }

  std::filesystem::path log_file() const { return folder.path() / "worker.log"; }
  std::string log() const { return file_text(log_file()); }
  void lease_out(std::vector<Lease> leases) { coordinator.send(Leases{std::move(leases)}); }
  ResultMessage result() {
    ResultMessage message = coordinator.expect<ResultMessage>();
    coordinator.send(Settled{message.lease});
    return message;
  }
  FailureMessage failure() {
    FailureMessage message = coordinator.expect<FailureMessage>();
    coordinator.send(Settled{message.lease});
    return message;
  }

  TempDir folder;
  ScriptedCoordinator coordinator;
  std::unique_ptr<Process> worker;
};

// The executors of a worker, as the kernel says.
std::vector<pid_t> children_of(pid_t parent) {
  const std::string task = "/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent);
  std::ifstream list(task + "/children");
  std::vector<pid_t> children;
  for (pid_t child; list >> child;) children.push_back(child);
  return children;
}

// Waits for the end of a process that is not our child.
bool ends_soon(const Descriptor& pidfd) {
  pollfd entry{pidfd.get(), POLLIN, 0};
  return ::poll(&entry, 1, 30'000) == 1;
}

Descriptor pidfd_of(pid_t pid) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// A named pipe on which a fake job waits until the test opens it.
class Gate {
 public:
  explicit Gate(const std::filesystem::path& path) : path_(path.string()) {
    REQUIRE(::mkfifo(path_.c_str(), 0600) == 0);
  }
  std::string script() const { return "wait:" + path_; }
  void open() const { std::ofstream(path_) << "go"; }  // blocks until the job is there

 private:
  std::string path_;
};

TEST_CASE("a worker says what it is, runs what it is given, and reports with the job's log") {
  Stage stage;
  const WorkerHello hello = stage.coordinator.join();
  CHECK(hello.name == "w1");
  CHECK(hello.executors == 1);
  CHECK(hello.kinds == std::vector<KindVersion>{{"test", 1}});
  CHECK(hello.profile.threads == 1);  // pinned by the agent, seen by the executor
  stage.lease_out({lease(1, "print:hello;metric:rm_accuracy:3:4"), lease(2, "print:other")});
  const ResultMessage first = stage.result();
  CHECK(first.lease.job == key(1));
  REQUIRE(first.result.metrics.size() == 1);
  CHECK(first.result.metrics[0].sum == 3);
  CHECK(first.log == "hello\n");
  CHECK(stage.result().log == "other\n");
}

TEST_CASE("a job that crashes fails with its signal and log; the next one runs") {
  Stage stage;
  stage.coordinator.join();
  stage.lease_out({lease(1, "print:last words;crash"), lease(2, "noop")});
  const FailureMessage failure = stage.failure();
  CHECK(failure.lease.job == key(1));
  CHECK(failure.failure.failure_class == FailureClass::crash);
  CHECK(failure.failure.signal == SIGSEGV);
  CHECK(failure.failure.log_tail == "last words\n");
  CHECK(stage.result().lease.job == key(2));
}

TEST_CASE("every bad end of a job has its class and its words") {
  struct End {
    const char* script;
    FailureClass failure_class;
    const char* says;
  };
  const std::vector<End> ends{
      {"fail:no such column", FailureClass::error, "no such column"},
      {"throw:bad cast", FailureClass::error, "bad cast"},
      {"oom", FailureClass::out_of_memory, "memory"},
      {"kill", FailureClass::out_of_memory, "signal 9"},
      {"exit:7", FailureClass::crash, "status 7"},
      {"garbage", FailureClass::crash, "nonsense"},
      {"close", FailureClass::crash, "closed its channel"},
      {"artifact:../escape:10", FailureClass::crash, "escape"},
  };
  Stage stage;
  stage.coordinator.join();
  for (const End& end : ends) {
    CAPTURE(end.script);
    stage.lease_out({lease(1, end.script)});
    const FailureMessage failure = stage.failure();
    CHECK(failure.failure.failure_class == end.failure_class);
    CHECK(failure.failure.message.find(end.says) != std::string::npos);
  }
  stage.lease_out({lease(2, "noop")});
  CHECK(stage.result().lease.job == key(2));
}

TEST_CASE("of a long log the last 64 KiB are kept") {
  Stage stage;
  stage.coordinator.join();
  stage.lease_out({lease(1, "log:1000000")});
  const ResultMessage result = stage.result();
  CHECK(result.log.size() == limits::log_tail_bytes);
  CHECK(result.log.ends_with("x\nend of log\n"));
}

TEST_CASE("a cancelled job that hangs or computes for ever is stopped, and the next one runs") {
  Stage stage;
  stage.coordinator.join();
  for (const char* script : {"progress:1;hang", "progress:1;spin"}) {
    stage.lease_out({lease(1, script), lease(2, "noop")});
    CHECK(stage.coordinator.expect<Progress>().lease.job == key(1));
    stage.coordinator.send(CancelLease{{key(1), 1}});
    CHECK(stage.coordinator.expect<LeaseReturned>().lease.job == key(1));
    CHECK(stage.result().lease.job == key(2));
  }
}

TEST_CASE("inputs are fetched once, verified, and found where the executor is told") {
  Stage stage;
  const std::string large(3'000'000, 'a');
  Lease job = lease(1, "inputs");
  ArtifactRef small = stage.coordinator.add_artifact("sub/config.json", "{}");
  small.inline_data = "{}";
  job.inputs.push_back(
      {"model", key(100), {stage.coordinator.add_artifact("model.safetensors", large), small}});
  job.inputs.push_back(
      {"dataset", digest_of("rows"), {stage.coordinator.add_artifact("", "rows")}});
  stage.coordinator.join();
  stage.lease_out({job});
  const ResultMessage result = stage.result();
  REQUIRE(result.result.metrics.size() == 2);
  CHECK(result.result.metrics[0].sum == 3'000'002);
  CHECK(result.result.metrics[0].count == 2);
  CHECK(result.result.metrics[1].sum == 4);

  const int gets = stage.coordinator.gets;
  job.id.job = key(2);
  stage.lease_out({job});
  CHECK(stage.result().result.metrics.size() == 2);
  CHECK(stage.coordinator.gets == gets);  // from the cache
}

TEST_CASE("an input with other bytes than its digest says fails the job, not the worker") {
  Stage stage;
  Lease job = lease(1, "inputs");
  ArtifactRef artifact = stage.coordinator.add_artifact("a", "honest");
  stage.coordinator.stored[artifact.digest] = "forged";
  job.inputs.push_back({"train", key(100), {artifact}});
  Lease missing = lease(2, "inputs");
  missing.inputs.push_back({"train", key(101), {{"b", digest_of("nobody"), 5, std::nullopt}}});
  stage.coordinator.join();
  stage.lease_out({job, missing});
  for (int i = 0; i < 2; ++i) {  // in any order
    const FailureMessage failure = stage.failure();
    const bool is_forged = failure.lease.job == key(1);
    const char* says = is_forged ? "another digest" : "no such artefact";
    CHECK(failure.failure.message.find(says) != std::string::npos);
  }
}

TEST_CASE("outputs: small ones travel in the result, large ones are stored before it is sent") {
  Stage stage;
  stage.coordinator.join();
  stage.lease_out({lease(1, "artifact:small.json:100;artifact:large/model.bin:3000000")});
  const ResultMessage result = stage.result();
  REQUIRE(result.result.artifacts.size() == 2);
  const ArtifactRef& small = result.result.artifacts[0];
  REQUIRE(small.inline_data.has_value());
  CHECK(digest_of(*small.inline_data) == small.digest);
  const ArtifactRef& large = result.result.artifacts[1];
  CHECK_FALSE(large.inline_data.has_value());
  CHECK(large.size == 3'000'000);
  CHECK(stage.coordinator.stored.contains(large.digest));
}

TEST_CASE("lost chunks of an upload are sent again") {
  Stage stage;
  int arrived = 0;
  stage.coordinator.accept_put = [&arrived](const BulkPut&) { return ++arrived % 3 != 0; };
  stage.coordinator.join();
  stage.lease_out({lease(1, "artifact:model.bin:1000000")});
  const ResultMessage result = stage.result();
  CHECK(stage.coordinator.stored.contains(result.result.artifacts.at(0).digest));
}

TEST_CASE("a coordinator that starts again finds the leases held, and loses no result") {
  Stage stage;
  const Gate gate(stage.folder.path() / "gate");
  stage.coordinator.join();
  stage.lease_out({lease(1, "noop"), lease(2, gate.script()), lease(3, "noop")});
  CHECK(stage.coordinator.expect<ResultMessage>().lease.job == key(1));  // never settled

  stage.coordinator.stop();
  stage.coordinator.start();
  const WorkerHello hello = stage.coordinator.join();
  const std::vector<LeaseId> held{{key(1), 1}, {key(2), 1}, {key(3), 1}};
  CHECK(hello.held == held);
  CHECK(stage.result().lease.job == key(1));
  gate.open();
  CHECK(stage.result().lease.job == key(2));
  CHECK(stage.result().lease.job == key(3));
  stage.coordinator.send(Settled{{key(3), 1}});  // once more
  stage.lease_out({lease(4, "noop")});
  CHECK(stage.result().lease.job == key(4));
}

TEST_CASE("an upload that a coordinator's restart cut short is finished afterwards") {
  Stage stage;
  stage.coordinator.join();
  stage.coordinator.accept_put = [](const BulkPut& put) { return put.offset < 1'000'000; };
  stage.lease_out({lease(1, "artifact:model.bin:5000000")});
  stage.coordinator.wait_until([&] { return stage.coordinator.puts >= 5; });
  stage.coordinator.stop();
  stage.coordinator.accept_put = [](const BulkPut&) { return true; };
  stage.coordinator.start();
  CHECK(stage.coordinator.join().held.size() == 1);
  const ResultMessage result = stage.result();
  CHECK(stage.coordinator.stored.contains(result.result.artifacts.at(0).digest));
}

TEST_CASE("leases that the coordinator dropped meanwhile are stopped") {
  Stage stage;
  stage.coordinator.join();
  stage.lease_out({lease(1, "progress:1;hang"), lease(2, "noop")});
  stage.coordinator.expect<Progress>();
  stage.coordinator.stop();
  stage.coordinator.start();
  stage.coordinator.join({{key(1), 1}});
  CHECK(stage.result().lease.job == key(2));
}

TEST_CASE("SIGTERM: leases go back, executors and folders go, exit 0") {
  Stage stage;
  stage.coordinator.join();
  stage.lease_out({lease(1, "progress:1;spin"), lease(2, "noop")});
  stage.coordinator.expect<Progress>();
  const std::vector<pid_t> executors = children_of(stage.worker->pid());
  REQUIRE(executors.size() == 1);
  const Descriptor executor = pidfd_of(executors[0]);
  stage.worker->signal(SIGTERM);
  CHECK(stage.coordinator.expect<LeaseReturned>().lease.job == key(1));
  CHECK(stage.coordinator.expect<LeaseReturned>().lease.job == key(2));
  stage.coordinator.expect<Goodbye>();
  stage.coordinator.send(Goodbye{});
  CHECK(stage.worker->wait() == 0);
  CHECK(ends_soon(executor));
  CHECK(std::filesystem::is_empty(stage.folder.path() / "cache" / "agents"));
}

TEST_CASE("without a coordinator SIGTERM ends the worker, too") {
  Stage stage;
  stage.coordinator.expect<WorkerHello>();  // never answered
  const auto start = std::chrono::steady_clock::now();
  stage.worker->signal(SIGTERM);
  CHECK(stage.worker->wait() == 0);
  CHECK(std::chrono::steady_clock::now() - start <
        std::chrono::milliseconds(limits::farewell_ms / 2));
}

TEST_CASE("when the life-line closes the worker goes at once, in the middle of a job") {
  std::array<int, 2> line{};
  REQUIRE(::pipe(line.data()) == 0);
  ::fcntl(line[1], F_SETFD, FD_CLOEXEC);
  Stage stage({"--lifeline-fd", std::to_string(line[0])});
  ::close(line[0]);
  stage.coordinator.join();
  stage.lease_out({lease(1, "progress:1;spin")});
  stage.coordinator.expect<Progress>();
  ::close(line[1]);
  CHECK(stage.worker->wait() == 0);
}

TEST_CASE("a worker killed with -9 takes its computing executor along") {
  Stage stage;
  stage.coordinator.join();
  stage.lease_out({lease(1, "progress:1;spin")});
  stage.coordinator.expect<Progress>();
  const std::vector<pid_t> executors = children_of(stage.worker->pid());
  REQUIRE(executors.size() == 1);
  const Descriptor executor = pidfd_of(executors[0]);
  REQUIRE(bool(executor));
  stage.worker->signal(SIGKILL);
  stage.worker->wait();
  CHECK(ends_soon(executor));
}

TEST_CASE("a refused worker says why and exits 3") {
  Stage stage;
  stage.coordinator.expect<WorkerHello>();
  stage.coordinator.send(Refused{"the name w1 is held by node7, pid 12"});
  CHECK(stage.worker->wait() == static_cast<int>(AgentExit::refused));
  CHECK(stage.log().find("held by node7, pid 12") != std::string::npos);
}

TEST_CASE("executors that never start end the worker with their words") {
  ::setenv("PREFGRID_FAKE_START", "print:libsomething.so is missing;exit:127", 1);
  Stage stage;
  const int status = stage.worker->wait();
  ::unsetenv("PREFGRID_FAKE_START");
  CHECK(status == static_cast<int>(AgentExit::executors_broken));
  CHECK(stage.log().find("libsomething.so is missing") != std::string::npos);
}

TEST_CASE("without an executor program the worker says so in one line and exits 2") {
  TempDir folder;
  const Finished finished =
      run_process({PREFGRID_BUILD_DIR "/prefgrid-worker", "--connect", "ipc:///nowhere",
                   "--executor", (folder.path() / "none").string()},
                  folder.path());
  CHECK(finished.status == static_cast<int>(AgentExit::bad_arguments));
  CHECK(finished.output.find("no executor program at") != std::string::npos);
  CHECK(std::count(finished.output.begin(), finished.output.end(), '\n') == 1);
}

TEST_CASE("an executor started by hand refuses politely") {
  TempDir folder;
  const Finished finished =
      run_process({PREFGRID_BUILD_DIR "/tests/prefgrid-fake-executor"}, folder.path());
  CHECK(finished.status == 2);
  CHECK(finished.output.find("started by prefgrid-worker") != std::string::npos);
}

}  // namespace
}  // namespace prefgrid
