// The session, step by step: no socket, no clock, no process.
#include "worker/agent/session.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "tests/support/seed.h"

namespace prefgrid {
namespace {

JobKey key(int number) {
  JobKey result;
  result.bytes[0] = static_cast<std::uint8_t>(number);
  result.bytes[1] = static_cast<std::uint8_t>(number >> 8);
  return result;
}

LeaseId lease_id(int job, Attempt attempt = 1) {
  return {key(job), attempt};
}

Lease lease(int job, std::uint64_t affinity = 0, Attempt attempt = 1) {
  Lease result;
  result.id = lease_id(job, attempt);
  result.spec.kind = "test";
  result.affinity = affinity;
  return result;
}

Lease lease_with_input(int job) {
  Lease result = lease(job);
  result.inputs.push_back({"train", key(1'000 + job), {}});
  return result;
}

ExecutorReady ready() {
  ExecutorReady result;
  result.kinds = {{"test", 1}};
  return result;
}

JobResult result_with(const std::vector<std::string>& artifacts) {
  JobResult result;
  for (const std::string& name : artifacts) {
    result.artifacts.push_back({name, {}, 1, std::nullopt});
  }
  return result;
}

// A session with everything it says, each effect taken by the test that expects it.
class Bench {
 public:
  explicit Bench(std::uint32_t executors = 1) : session_(config(executors)) {}

  static SessionConfig config(std::uint32_t executors) {
    return {"w1", "host", 7, executors, "0.1", "/out"};
  }

  Bench& joined() {
    take(session_.start());
    for (std::uint32_t i = 0; i < executors(); ++i) {
      take(session_.executor_ready(SlotId{i}, ready(), now));
    }
    receive(Welcome{"0.1", "tcp://:1", 1'000, {}});
    effects.clear();
    return *this;
  }
  std::uint32_t executors() const { return count_; }

  void take(AgentEffects more) {
    session_.check_invariants();
    for (AgentEffect& effect : more) effects.push_back(std::move(effect));
  }
  void receive(Message message) { take(session_.on_message(std::move(message), now)); }
  void receive_leases(std::vector<Lease> leases) { receive(Leases{std::move(leases)}); }
  void pass(std::int64_t ms) {
    now = now + ms;
    take(session_.on_tick(now));
  }
  void finish(std::uint32_t slot, const LeaseId& id, JobResult result = {}) {
    take(session_.executor_finished(SlotId{slot}, {id, std::move(result)}, "log", now));
  }

  // The effects of one type so far, which are then forgotten.
  template <class T>
  std::vector<T> all() {
    std::vector<T> found;
    std::erase_if(effects, [&found](AgentEffect& effect) {
      auto* wanted = std::get_if<T>(&effect);
      if (wanted) found.push_back(std::move(*wanted));
      return wanted != nullptr;
    });
    return found;
  }
  template <class T>
  std::vector<T> sent() {
    std::vector<T> found;
    std::erase_if(effects, [&found](AgentEffect& effect) {
      auto* send = std::get_if<SendControl>(&effect);
      auto* wanted = send ? std::get_if<T>(&send->message) : nullptr;
      if (wanted) found.push_back(std::move(*wanted));
      return wanted != nullptr;
    });
    return found;
  }

  MonotonicMs now{1'000'000};
  std::vector<AgentEffect> effects;
  std::uint32_t count_ = 1;
  Session session_;
};

Bench bench_of(std::uint32_t executors) {
  Bench bench(executors);
  bench.count_ = executors;
  return bench;
}

TEST_CASE("an agent says hello only when an executor has said what it can run") {
  Bench bench = bench_of(2);
  bench.take(bench.session_.start());
  CHECK(bench.all<StartExecutor>().size() == 2);
  CHECK(bench.sent<WorkerHello>().empty());

  bench.take(bench.session_.executor_ready(SlotId{1}, ready(), bench.now));
  const auto hellos = bench.sent<WorkerHello>();
  REQUIRE(hellos.size() == 1);
  CHECK(hellos[0].name == "w1");
  CHECK(hellos[0].executors == 2);
  CHECK(hellos[0].kinds == std::vector<KindVersion>{{"test", 1}});
  CHECK(hellos[0].held.empty());
}

TEST_CASE("without an answer the hello is repeated, less and less often") {
  Bench bench;
  bench.take(bench.session_.start());
  bench.take(bench.session_.executor_ready(SlotId{0}, ready(), bench.now));
  CHECK(bench.sent<WorkerHello>().size() == 1);
  bench.pass(999);
  CHECK(bench.sent<WorkerHello>().empty());
  bench.pass(1);
  CHECK(bench.sent<WorkerHello>().size() == 1);
  bench.pass(1'999);
  CHECK(bench.sent<WorkerHello>().empty());
  bench.pass(1);
  CHECK(bench.sent<WorkerHello>().size() == 1);
  for (int i = 0; i < 10; ++i) bench.pass(5'000);
  CHECK(bench.sent<WorkerHello>().size() == 10);
}

TEST_CASE("a lease runs, its result is sent, and it is forgotten when settled") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1)});
  const auto runs = bench.all<RunOnExecutor>();
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].job.lease == lease_id(1));
  CHECK(runs[0].job.output_dir.starts_with("/out/"));

  bench.finish(0, lease_id(1));
  const auto results = bench.sent<ResultMessage>();
  REQUIRE(results.size() == 1);
  CHECK(results[0].lease == lease_id(1));
  CHECK(results[0].log == "log");
  CHECK(bench.session_.tasks() == 1);

  bench.receive(Settled{lease_id(1)});
  CHECK(bench.session_.tasks() == 0);
  bench.receive(Settled{lease_id(1)});  // once more does nothing
  CHECK(bench.session_.tasks() == 0);
  CHECK(bench.effects.empty());
}

TEST_CASE("a result that nobody settles is sent again, and once more after a reconnection") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1)});
  bench.finish(0, lease_id(1));
  CHECK(bench.sent<ResultMessage>().size() == 1);
  for (int i = 0; i < 10; ++i) {  // the coordinator lives: it answers heartbeats
    bench.receive(Heartbeat{});
    bench.pass(1'000);
  }
  CHECK(bench.sent<ResultMessage>().size() == 1);

  bench.pass(3'000);  // silence
  const auto hellos = bench.sent<WorkerHello>();
  REQUIRE(hellos.size() == 1);
  CHECK(hellos[0].held == std::vector<LeaseId>{lease_id(1)});
  bench.receive(Welcome{"0.1", "tcp://:1", 1'000, {}});
  CHECK(bench.sent<ResultMessage>().size() == 1);
}

TEST_CASE("heartbeats go out every interval that the welcome names") {
  Bench bench;
  bench.take(bench.session_.start());
  bench.take(bench.session_.executor_ready(SlotId{0}, ready(), bench.now));
  bench.receive(Welcome{"0.1", "tcp://:1", 250, {}});
  bench.effects.clear();
  for (int i = 0; i < 8; ++i) {
    bench.receive(Heartbeat{});
    CHECK(bench.session_.next_deadline() == bench.now + 250);
    bench.pass(250);
  }
  CHECK(bench.sent<Heartbeat>().size() == 8);
  CHECK(bench.sent<WorkerHello>().empty());
}

TEST_CASE("held leases survive a coordinator's restart; those it dropped are stopped") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1), lease(2), lease(3)});
  CHECK(bench.all<RunOnExecutor>().size() == 1);
  bench.pass(3'000);
  const auto hellos = bench.sent<WorkerHello>();
  REQUIRE(hellos.size() == 1);
  CHECK(hellos[0].held == std::vector<LeaseId>{lease_id(1), lease_id(2), lease_id(3)});
  CHECK(bench.all<KillExecutor>().empty());

  bench.receive(Welcome{"0.1", "tcp://:1", 1'000, {lease_id(1), lease_id(3)}});
  CHECK(bench.all<KillExecutor>().size() == 1);
  CHECK(bench.session_.tasks() == 1);
  bench.take(bench.session_.executor_died(SlotId{0}, {9, 0, "", ""}, bench.now));
  CHECK(bench.sent<FailureMessage>().empty());  // it was killed by us: nobody's failure
  bench.take(bench.session_.executor_ready(SlotId{0}, ready(), bench.now));
  const auto runs = bench.all<RunOnExecutor>();
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].job.lease == lease_id(2));
}

TEST_CASE("a finished job whose lease was dropped is still reported") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1)});
  bench.pass(3'000);
  bench.finish(0, lease_id(1));
  CHECK(bench.sent<ResultMessage>().empty());  // nobody to tell yet
  bench.receive(Welcome{"0.1", "tcp://:1", 1'000, {lease_id(1)}});
  CHECK(bench.sent<ResultMessage>().size() == 1);
}

TEST_CASE("leases that crossed the hello are listed in a second one") {
  Bench bench = Bench().joined();
  bench.pass(3'000);
  CHECK(bench.sent<WorkerHello>().size() == 1);
  bench.receive_leases({lease(5)});
  bench.receive(Welcome{"0.1", "tcp://:1", 1'000, {}});
  const auto hellos = bench.sent<WorkerHello>();
  REQUIRE(hellos.size() == 1);
  CHECK(hellos[0].held == std::vector<LeaseId>{lease_id(5)});
  bench.receive(Welcome{"0.1", "tcp://:1", 1'000, {}});
  CHECK(bench.sent<WorkerHello>().empty());
  CHECK(bench.session_.welcomed());
}

TEST_CASE("the same job under a newer attempt goes on where it is") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1)});
  CHECK(bench.all<RunOnExecutor>().size() == 1);
  bench.receive_leases({lease(1, 0, 2)});
  CHECK(bench.all<RunOnExecutor>().empty());
  CHECK(bench.all<KillExecutor>().empty());
  bench.take(bench.session_.executor_progress(SlotId{0}, {lease_id(1), 5, 10, 0.5}));
  const auto progress = bench.sent<Progress>();
  REQUIRE(progress.size() == 1);
  CHECK(progress[0].lease == lease_id(1, 2));

  bench.finish(0, lease_id(1));  // the executor knows the old number only
  const auto results = bench.sent<ResultMessage>();
  REQUIRE(results.size() == 1);
  CHECK(results[0].lease == lease_id(1, 2));

  SUBCASE("and once finished it is reported under the newest") {
    bench.receive_leases({lease(1, 0, 3)});
    const auto again = bench.sent<ResultMessage>();
    REQUIRE(again.size() == 1);
    CHECK(again[0].lease == lease_id(1, 3));
    bench.receive(Settled{lease_id(1, 2)});
    CHECK(bench.session_.tasks() == 1);
    bench.receive(Settled{lease_id(1, 3)});
    CHECK(bench.session_.tasks() == 0);
  }
  SUBCASE("and a late copy of the old lease changes nothing") {
    bench.receive_leases({lease(1, 0, 1)});
    CHECK(bench.effects.empty());
  }
}

TEST_CASE("a cancelled lease stops, wherever it is") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1), lease(2), lease_with_input(3)});
  bench.effects.clear();

  SUBCASE("while it waits for an executor") {
    bench.receive(CancelLease{lease_id(2)});
    CHECK(bench.all<KillExecutor>().empty());
    CHECK(bench.sent<LeaseReturned>().size() == 1);
  }
  SUBCASE("while its inputs come") {
    bench.receive(CancelLease{lease_id(3)});
    const auto released = bench.all<ReleaseFiles>();
    REQUIRE(released.size() == 1);
    CHECK(bench.sent<LeaseReturned>().size() == 1);
    bench.take(bench.session_.files_prepared(released[0].ticket, {}));  // too late
    CHECK(bench.effects.empty());
  }
  SUBCASE("while it runs: the executor is killed and the next job goes to a fresh one") {
    bench.receive(CancelLease{lease_id(1)});
    CHECK(bench.all<KillExecutor>().size() == 1);
    CHECK(bench.all<ReleaseFiles>().size() == 1);
    bench.finish(0, lease_id(1));  // it had just finished: too late
    CHECK(bench.sent<ResultMessage>().empty());
    bench.take(bench.session_.executor_died(SlotId{0}, {9, 0, "", ""}, bench.now));
    CHECK(bench.all<StartExecutor>().size() == 1);
    bench.take(bench.session_.executor_ready(SlotId{0}, ready(), bench.now));
    const auto runs = bench.all<RunOnExecutor>();
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].job.lease == lease_id(2));
    CHECK(bench.sent<FailureMessage>().empty());
  }
  SUBCASE("an older attempt's cancellation is not for us") {
    bench.receive(CancelLease{lease_id(1, 0)});
    CHECK(bench.effects.empty());
  }
}

TEST_CASE("a kind or version that the executors lack is handed back") {
  Bench bench = Bench().joined();
  Lease unknown = lease(1);
  unknown.spec.kind = "train.new";
  Lease newer = lease(2);
  newer.spec.kind_version = 2;
  bench.receive_leases({unknown, newer});
  CHECK(bench.sent<LeaseReturned>().size() == 2);
  CHECK(bench.session_.tasks() == 0);
}

TEST_CASE("a crash is that job's failure; the executor starts again and its queue goes on") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1), lease(2)});
  bench.effects.clear();
  bench.take(bench.session_.executor_died(SlotId{0}, {11, 0, "last words", ""}, bench.now));
  const auto failures = bench.sent<FailureMessage>();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].lease == lease_id(1));
  CHECK(failures[0].failure.failure_class == FailureClass::crash);
  CHECK(failures[0].failure.signal == 11);
  CHECK(failures[0].failure.log_tail == "last words");
  CHECK(bench.all<StartExecutor>().size() == 1);
  CHECK(bench.all<ReleaseFiles>().size() == 1);  // it may have left a half-written folder
  bench.take(bench.session_.executor_ready(SlotId{0}, ready(), bench.now));
  CHECK(bench.all<RunOnExecutor>().size() == 1);
}

TEST_CASE("an executor killed from outside probably ran out of memory") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1)});
  bench.take(bench.session_.executor_died(SlotId{0}, {9, 0, "", ""}, bench.now));
  const auto failures = bench.sent<FailureMessage>();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].failure.failure_class == FailureClass::out_of_memory);
  CHECK(failures[0].failure.signal == 9);
}

TEST_CASE("executors that never start end the agent, after growing pauses, with their last words") {
  Bench bench;
  bench.take(bench.session_.start());
  std::int64_t waited = 0;
  for (std::uint32_t i = 0; i < limits::start_failures; ++i) {
    CHECK(bench.all<StartExecutor>().size() == 1);
    bench.take(
        bench.session_.executor_died(SlotId{0}, {0, 3, "no libtorch here\n", ""}, bench.now));
    const auto deadline = bench.session_.next_deadline();
    if (i + 1 == limits::start_failures) break;
    REQUIRE(deadline);
    CHECK(*deadline - bench.now > waited);
    waited = *deadline - bench.now;
    bench.pass(waited);
  }
  const auto exits = bench.all<ExitAgent>();
  REQUIRE(exits.size() == 1);
  CHECK(exits[0].code == AgentExit::executors_broken);
  CHECK(exits[0].message.find("exit status 3") != std::string::npos);
  CHECK(exits[0].message.find("no libtorch here") != std::string::npos);
}

TEST_CASE("one executor that does not start costs the others nothing") {
  Bench bench = bench_of(2);
  bench.take(bench.session_.start());
  bench.take(bench.session_.executor_ready(SlotId{0}, ready(), bench.now));
  for (int i = 0; i < 20; ++i) {
    bench.take(bench.session_.executor_died(SlotId{1}, {0, 1, "", ""}, bench.now));
    bench.pass(limits::restart_max_ms);
  }
  CHECK(bench.all<ExitAgent>().empty());
  CHECK(bench.all<StartExecutor>().size() == 22);
}

TEST_CASE("jobs that share a model stay on the executor that has it") {
  Bench bench = bench_of(2).joined();
  // Two models, interleaved: 1 3 5 7 have model 10, 2 4 6 8 have model 20.
  std::vector<Lease> leases;
  for (int i = 1; i <= 8; ++i) leases.push_back(lease(i, i % 2 == 1 ? 10 : 20));
  bench.receive_leases(leases);
  std::vector<std::vector<int>> ran(2);
  for (int round = 0; round < 4; ++round) {
    const auto runs = bench.all<RunOnExecutor>();
    REQUIRE(runs.size() == 2);
    for (const RunOnExecutor& run : runs) {
      const auto slot = static_cast<std::uint32_t>(run.slot);
      ran[slot].push_back(run.job.lease.job.bytes[0]);
      bench.finish(slot, run.job.lease);
    }
  }
  CHECK(ran[0] == std::vector<int>{1, 3, 5, 7});
  CHECK(ran[1] == std::vector<int>{2, 4, 6, 8});
}

TEST_CASE("an executor takes another's queue rather than idle") {
  Bench bench = bench_of(2).joined();
  bench.receive_leases({lease(1, 10), lease(2, 10), lease(3, 10)});
  CHECK(bench.all<RunOnExecutor>().size() == 2);
}

TEST_CASE("inputs come first, outputs are stored before the result is sent") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease_with_input(1)});
  CHECK(bench.all<RunOnExecutor>().empty());
  const auto prepares = bench.all<PrepareFiles>();
  REQUIRE(prepares.size() == 1);
  REQUIRE(prepares[0].inputs.size() == 1);
  const Ticket ticket = prepares[0].ticket;

  bench.take(bench.session_.files_prepared(ticket, {{"train", key(1'001), "/in/x"}}));
  const auto runs = bench.all<RunOnExecutor>();
  REQUIRE(runs.size() == 1);
  REQUIRE(runs[0].job.inputs.size() == 1);
  CHECK(runs[0].job.inputs[0].path == "/in/x");

  bench.finish(0, lease_id(1), result_with({"model.safetensors"}));
  CHECK(bench.sent<ResultMessage>().empty());
  const auto stores = bench.all<StoreFiles>();
  REQUIRE(stores.size() == 1);
  CHECK(stores[0].ticket == ticket);
  CHECK(stores[0].output_dir == runs[0].job.output_dir);
  CHECK(bench.all<ReleaseFiles>().empty());

  bench.take(bench.session_.files_stored(ticket, result_with({"model.safetensors"}), bench.now));
  CHECK(bench.sent<ResultMessage>().size() == 1);
  CHECK(bench.all<ReleaseFiles>().size() == 1);
}

TEST_CASE("an input that cannot be had is that job's failure") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease_with_input(1)});
  const auto prepares = bench.all<PrepareFiles>();
  REQUIRE(prepares.size() == 1);
  bench.take(bench.session_.files_failed(prepares[0].ticket, invalid_input("no such artefact"),
                                         bench.now));
  const auto failures = bench.sent<FailureMessage>();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].failure.failure_class == FailureClass::error);
  CHECK(failures[0].failure.message == "no such artefact");
}

TEST_CASE("finished results are bounded: no job starts until the coordinator takes some") {
  Bench bench = Bench().joined();
  std::vector<Lease> leases;
  for (int i = 0; i < static_cast<int>(limits::unsettled_results) + 3; ++i) {
    leases.push_back(lease(i));
  }
  bench.receive_leases(leases);
  int ran = 0;
  for (auto runs = bench.all<RunOnExecutor>(); !runs.empty(); runs = bench.all<RunOnExecutor>()) {
    ran += 1;
    bench.finish(0, runs[0].job.lease);
  }
  CHECK(ran == static_cast<int>(limits::unsettled_results));
  bench.receive(Settled{lease_id(0)});
  CHECK(bench.all<RunOnExecutor>().size() == 1);
}

TEST_CASE("shutdown hands leases back, keeps asking for results to be settled, then exits 0") {
  Bench bench = bench_of(2).joined();
  bench.receive_leases({lease(1), lease(2), lease(3)});
  bench.finish(0, lease_id(1));
  bench.effects.clear();

  bench.take(bench.session_.shutdown(bench.now));
  CHECK(bench.all<KillExecutor>().size() == 2);
  const auto returned = bench.sent<LeaseReturned>();
  REQUIRE(returned.size() == 2);
  CHECK(returned[0].lease == lease_id(2));
  CHECK(returned[1].lease == lease_id(3));
  const auto hellos = bench.sent<WorkerHello>();
  REQUIRE(hellos.size() == 1);
  CHECK(hellos[0].executors == 0);
  CHECK(hellos[0].held == std::vector<LeaseId>{lease_id(1)});

  bench.receive_leases({lease(4)});  // it crossed the farewell
  CHECK(bench.sent<LeaseReturned>().size() == 1);
  bench.receive(Welcome{"0.1", "", 1'000, {}});
  CHECK(bench.all<ExitAgent>().empty());
  SUBCASE("when the last result is settled") {
    bench.receive(Settled{lease_id(1)});
  }
  SUBCASE("or when nobody settles it in time") {
    bench.pass(limits::farewell_ms);
  }
  const auto exits = bench.all<ExitAgent>();
  REQUIRE(exits.size() == 1);
  CHECK(exits[0].code == AgentExit::asked);
}

TEST_CASE("a refusal ends the agent with the coordinator's reason") {
  Bench bench;
  bench.take(bench.session_.start());
  bench.take(bench.session_.executor_ready(SlotId{0}, ready(), bench.now));
  bench.receive(Refused{"the name w1 is held by host2, pid 12"});
  const auto exits = bench.all<ExitAgent>();
  REQUIRE(exits.size() == 1);
  CHECK(exits[0].code == AgentExit::refused);
  CHECK(exits[0].message.find("held by host2") != std::string::npos);
}

TEST_CASE("another protocol version ends the agent, a damaged frame does not") {
  Bench bench = Bench().joined();
  bench.take(bench.session_.on_damaged_frame(invalid_input("bad checksum"), bench.now));
  CHECK(bench.effects.empty());
  const Error version{ErrorCode::conflict, "protocol 2, this is 1"};
  bench.take(bench.session_.on_damaged_frame(version, bench.now));
  CHECK(bench.all<ExitAgent>().size() == 1);
}

TEST_CASE("a full queue is a lost connection: the next hello says all again") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1)});
  bench.finish(0, lease_id(1));
  bench.take(bench.session_.on_send_failed(bench.now));
  CHECK_FALSE(bench.session_.welcomed());
  bench.effects.clear();
  bench.pass(limits::hello_retry_max_ms);
  CHECK(bench.sent<WorkerHello>().size() == 1);
  bench.receive(Welcome{"0.1", "", 1'000, {}});
  CHECK(bench.sent<ResultMessage>().size() == 1);
}

// Every message in any order, many times: the invariants hold after each, and when the chaos ends
// each leased job has been reported or handed back.
TEST_CASE("any order of events keeps the invariants, and no job is lost or runs twice") {
  RandomStream random(test_seed(), "session");
  Bench bench = bench_of(3).joined();
  std::map<std::uint32_t, LeaseId> running;
  std::vector<Ticket> preparing;
  std::vector<StoreFiles> storing;
  const auto absorb = [&] {
    for (auto& run : bench.all<RunOnExecutor>()) {
      const auto slot = static_cast<std::uint32_t>(run.slot);
      REQUIRE_FALSE(running.contains(slot));
      for (const auto& [other, id] : running) REQUIRE(id.job != run.job.lease.job);
      running[slot] = run.job.lease;
    }
    for (const auto& kill : bench.all<KillExecutor>()) {
      const auto slot = static_cast<std::uint32_t>(kill.slot);
      running.erase(slot);
      bench.take(bench.session_.executor_died(kill.slot, {9, 0, "", ""}, bench.now));
    }
    for (const auto& start : bench.all<StartExecutor>()) {
      bench.take(bench.session_.executor_ready(start.slot, ready(), bench.now));
    }
    for (auto& prepare : bench.all<PrepareFiles>()) preparing.push_back(prepare.ticket);
    for (auto& store : bench.all<StoreFiles>()) storing.push_back(std::move(store));
    REQUIRE(bench.all<ExitAgent>().empty());
  };
  const auto settle_all = [&] {
    for (const auto& result : bench.sent<ResultMessage>()) bench.receive(Settled{result.lease});
    for (const auto& failure : bench.sent<FailureMessage>()) bench.receive(Settled{failure.lease});
  };
  const auto end_one = [&](bool crash) {
    if (running.empty()) return;
    const auto [slot, id] = *running.begin();
    running.erase(slot);
    if (crash) {
      bench.take(bench.session_.executor_died(SlotId{slot}, {11, 0, "", ""}, bench.now));
    } else {
      const bool files = random.below(2) == 0;
      bench.finish(slot, id, files ? result_with({"a"}) : JobResult{});
    }
  };
  for (int step = 0; step < 4'000; ++step) {
    const int job = static_cast<int>(random.below(40));
    const auto attempt = static_cast<Attempt>(1 + random.below(3));
    switch (random.below(10)) {
      case 0:
        bench.receive_leases({lease(job, random.below(3), attempt)});
        break;
      case 1: {
        Lease with_input = lease_with_input(job);
        with_input.id.attempt = attempt;
        bench.receive_leases({with_input});
        break;
      }
      case 2:
        end_one(false);
        break;
      case 3:
        end_one(true);
        break;
      case 4:
        bench.receive(CancelLease{lease_id(job, attempt)});
        break;
      case 5:
        bench.receive(Settled{lease_id(job, attempt)});
        break;
      case 6:
        for (const Ticket ticket : std::exchange(preparing, {})) {
          bench.take(bench.session_.files_prepared(ticket, {}));
        }
        break;
      case 7:
        for (StoreFiles& store : std::exchange(storing, {})) {
          bench.take(bench.session_.files_stored(store.ticket, std::move(store.result), bench.now));
        }
        break;
      case 8:
        bench.pass(static_cast<std::int64_t>(random.below(4'000)));
        break;
      case 9:
        bench.receive(Welcome{"0.1", "tcp://:1", 1'000, {lease_id(job, attempt)}});
        settle_all();
        break;
    }
    absorb();
  }
  for (int round = 0; round < 200 && bench.session_.tasks() > 0; ++round) {
    for (const Ticket ticket : std::exchange(preparing, {})) {
      bench.take(bench.session_.files_prepared(ticket, {}));
    }
    for (StoreFiles& store : std::exchange(storing, {})) {
      bench.take(bench.session_.files_stored(store.ticket, std::move(store.result), bench.now));
    }
    absorb();
    while (!running.empty()) {
      end_one(false);
      absorb();
    }
    bench.receive(Welcome{"0.1", "tcp://:1", 1'000, {}});
    bench.receive(Heartbeat{});
    bench.pass(limits::resend_ms);
    settle_all();
    absorb();
  }
  CHECK(bench.session_.tasks() == 0);
}

}  // namespace
}  // namespace prefgrid
