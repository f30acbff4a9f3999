// The session towards the coordinator, step by step: no socket, no clock, no process.
#include <doctest/doctest.h>

#include "tests/worker/agent/session_bench.h"

namespace prefgrid::session_test {
namespace {

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

TEST_CASE("shutdown hands leases back, says goodbye, waits for results to be settled, exits 0") {
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
  REQUIRE(!bench.effects.empty());
  const auto* last = std::get_if<SendControl>(&bench.effects.back());
  CHECK((last != nullptr && std::holds_alternative<Goodbye>(last->message)));
  bench.receive_leases({lease(4)});  // it crossed the goodbye
  CHECK(bench.all<RunOnExecutor>().empty());
  CHECK(bench.all<ExitAgent>().empty());
  SUBCASE("when the last result is settled, before the answer") {
    bench.receive(Settled{lease_id(1)});
    CHECK(bench.all<ExitAgent>().empty());
    bench.receive(Goodbye{});
  }
  SUBCASE("or after it") {
    bench.receive(Goodbye{});
    CHECK(bench.all<ExitAgent>().empty());
    bench.receive(Settled{lease_id(1)});
  }
  SUBCASE("or when nobody settles it in time") {
    bench.receive(Goodbye{});
    bench.pass(limits::farewell_ms);
  }
  const auto exits = bench.all<ExitAgent>();
  REQUIRE(exits.size() == 1);
  CHECK(exits[0].code == AgentExit::asked);
}

TEST_CASE("where nobody answers anyhow, shutdown does not wait long, but says what it has") {
  Bench bench = Bench().joined();
  bench.receive_leases({lease(1)});
  bench.finish(0, lease_id(1));
  bench.pass(3'000);  // silence
  bench.effects.clear();
  bench.take(bench.session_.shutdown(bench.now));
  CHECK(bench.sent<ResultMessage>().size() == 1);
  CHECK(bench.sent<Goodbye>().size() == 1);
  bench.pass(limits::farewell_unheard_ms);
  CHECK(bench.all<ExitAgent>().size() == 1);
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

}  // namespace
}  // namespace prefgrid::session_test
