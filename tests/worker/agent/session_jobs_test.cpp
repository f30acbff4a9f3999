// The session towards its executors and files, step by step.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "tests/support/seed.h"
#include "tests/worker/agent/session_bench.h"

namespace prefgrid::session_test {
namespace {

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
  CHECK(bench.sent<FailureMessage>().empty());  // not before the disk was looked at
  bench.judge_all();
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
  bench.judge_all();
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
  bench.checked = false;
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

TEST_CASE("on a full disk what has not begun is handed back, what runs goes on, nothing begins") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1), lease(2), lease_with_input(3)});
  const auto prepares = bench.all<PrepareFiles>();
  REQUIRE(prepares.size() == 1);
  bench.effects.clear();
  bench.take(bench.session_.room_lost("the disk of /cache is full"));
  const auto returned = bench.sent<LeaseReturned>();
  REQUIRE(returned.size() == 2);
  CHECK(returned[0].lease == lease_id(2));
  CHECK(returned[1].lease == lease_id(3));
  CHECK(bench.all<KillExecutor>().empty());
  const auto waits = bench.sent<WorkerWaits>();
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].reason == "the disk of /cache is full");
  // Too late, both.
  bench.take(bench.session_.files_prepared(prepares[0].ticket, {}));
  bench.take(bench.session_.files_failed(prepares[0].ticket, {ErrorCode::out_of_space, "full"},
                                         bench.now));
  CHECK(bench.sent<FailureMessage>().empty());

  bench.receive_leases({lease(4)});  // it had not heard
  CHECK(bench.sent<LeaseReturned>().size() == 1);
  CHECK(bench.sent<WorkerWaits>().size() == 1);
  bench.receive(Heartbeat{});
  bench.pass(1'000);
  CHECK(bench.sent<WorkerWaits>().size() == 1);  // in a heartbeat's stead
  CHECK(bench.sent<Heartbeat>().empty());
  CHECK(bench.all<ReleaseFiles>().size() == 2);

  SUBCASE("what runs may end well") {
    bench.finish(0, lease_id(1));
    CHECK(bench.sent<ResultMessage>().size() == 1);
  }
  SUBCASE("or fail for want of room, which is nobody's fault") {
    FailureMessage failure{lease_id(1), {}};
    SUBCASE("as it says itself") {
      failure.failure.failure_class = FailureClass::no_space;
    }
    SUBCASE("or by any other words") {}
    bench.take(bench.session_.executor_failed(SlotId{0}, failure));
    bench.judge_all(true);
    CHECK(bench.sent<LeaseReturned>().size() == 1);
    CHECK(bench.sent<FailureMessage>().empty());
    CHECK(bench.all<ReleaseFiles>().size() == 1);
  }
  bench.take(bench.session_.room_found());
  CHECK(bench.sent<Heartbeat>().size() == 1);
  bench.receive_leases({lease(5)});
  CHECK(bench.sent<LeaseReturned>().empty());
}

TEST_CASE("a job that found no room on a disk with plenty is charged: its outputs are too large") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1)});
  FailureMessage failure{lease_id(1), {}};
  failure.failure.failure_class = FailureClass::no_space;
  bench.take(bench.session_.executor_failed(SlotId{0}, failure));
  const auto judges = bench.all<JudgeFailure>();
  REQUIRE(judges.size() == 1);
  CHECK(judges[0].says_no_room);
  bench.take(bench.session_.failure_judged(judges[0].ticket, false, bench.now));
  const auto failures = bench.sent<FailureMessage>();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].failure.failure_class == FailureClass::error);
}

TEST_CASE("a worker that waits for room says so in its hello") {
  Bench bench = Bench().joined();
  bench.take(bench.session_.room_lost("full"));
  bench.pass(3'000);
  const auto hellos = bench.sent<WorkerHello>();
  REQUIRE(hellos.size() == 1);
  CHECK(hellos[0].waits_for == "full");
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
    if (random.below(2) == 0) bench.judge_all(random.below(3) == 0);
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
    switch (random.below(12)) {
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
      case 10:
        bench.take(bench.session_.room_lost("no room"));
        break;
      case 11:
        bench.take(bench.session_.room_found());
        break;
    }
    absorb();
  }
  bench.take(bench.session_.room_found());
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
    bench.judge_all();
    bench.receive(Welcome{"0.1", "tcp://:1", 1'000, {}});
    bench.receive(Heartbeat{});
    bench.pass(limits::resend_ms);
    settle_all();
    absorb();
  }
  CHECK(bench.session_.tasks() == 0);
}

}  // namespace
}  // namespace prefgrid::session_test
