// Jobs that run alone: how a job that kills its workers condemns nobody but itself.
#include "tests/coordinator/core/core_driver.h"

namespace prefgrid {
namespace {

// A worker of that name joins, and dies with all that it was given.
void worker_dies(CoreDriver& driver, const std::string& name, const std::string& kind,
                 std::uint32_t executors) {
  driver.connect(name, {kind}, executors);
  driver.step(WorkerGone{name, "killed by signal 9"});
}

std::vector<std::string> leased(const CoreDriver& driver, const std::string& stage, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    const std::string name = stage + ":" + std::to_string(i);
    if (driver.state(name) == "leased") names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("after its worker was lost a job shares the next one with nobody") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 6));
  worker_dies(driver, "doomed", "train", 2);
  REQUIRE(driver.core().counters().failures_charged == 2);
  driver.connect("w", {"train"}, 2);
  REQUIRE(leased(driver, "train", 6) == std::vector<std::string>{"train:0"});
  CHECK(driver.core().why_waiting(key_of("train:1")).find("nothing else to run") !=
        std::string::npos);
  driver.result("w", driver.lease("train:0"));
  REQUIRE(leased(driver, "train", 6) == std::vector<std::string>{"train:1"});
  driver.result("w", driver.lease("train:1"));
  CHECK(leased(driver, "train", 6).size() > 1);
}

TEST_CASE("a job that kills its worker is quarantined; its neighbours are charged once at most") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 8));
  // train:2 kills whatever worker it runs on; results come in as long as it is not out.
  int deaths = 0;
  for (int round = 0; round < 100 && !driver.core().finished(ExperimentId{1}); ++round) {
    const std::string worker = "w" + std::to_string(deaths);
    driver.connect(worker, {"train"}, 4);
    if (driver.state("train:2") == "leased") {
      ++deaths;
      driver.step(WorkerGone{worker, "killed by signal 9"});
      driver.advance(4'000);
      continue;
    }
    const auto running = leased(driver, "train", 8);
    REQUIRE(!running.empty());
    driver.result(worker, driver.lease(running[0]));
  }
  CHECK(driver.state("train:2") == "quarantined");
  CHECK(driver.counts().done == 7);
  CHECK(deaths == static_cast<int>(limits::attempts_per_job));
  // Four were running at the first death, it alone at the others.
  CHECK(driver.core().counters().failures_charged == 4 + 2);
}

TEST_CASE("a busy worker is kept free for a job that runs alone, and an idle one goes first") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train:suspect"));
  worker_dies(driver, "doomed", "train", 1);
  REQUIRE(driver.state("train:suspect") == "ready");
  // In another kind's way: more urgent, so that it goes out first.
  driver.submit(PlanBuilder().kind("train").jobs("long", 2), 2, 5);
  driver.connect("busy", {"train"}, 2);
  REQUIRE(driver.counts(2).running == 2);
  driver.submit(PlanBuilder().kind("train").jobs("more", 4), 3);
  driver.result("busy", driver.lease("long:0"));
  CHECK(driver.counts(3).running == 0);  // it runs dry
  CHECK(driver.state("train:suspect") == "ready");
  SUBCASE("it runs dry, and has the job") {
    driver.result("busy", driver.lease("long:1"));
    CHECK(driver.worker_of("train:suspect") == "busy");
    CHECK(driver.counts(3).running == 0);
    driver.result("busy", driver.lease("train:suspect"));
    CHECK(driver.counts(3).running > 0);
  }
  SUBCASE("another one comes: the other jobs are for it, and each has its own") {
    driver.connect("idle", {"train"}, 2);
    CHECK(driver.counts(3).running > 0);
  }
  SUBCASE("another one comes that finds nothing else to do") {
    driver.step(CancelExperiment{ExperimentId{3}});
    driver.connect("idle", {"train"}, 2);
    CHECK(driver.worker_of("train:suspect") == "idle");
    driver.submit(PlanBuilder().kind("train").jobs("late", 3), 4);
    CHECK(driver.worker_of("late:0") == "busy");  // free again
  }
  SUBCASE("the kept one drains: the job is not stuck with it") {
    driver.step(DrainWorker{"busy", true});
    driver.step(CancelExperiment{ExperimentId{3}});
    driver.connect("idle", {"train"}, 1);
    CHECK(driver.worker_of("train:suspect") == "idle");
  }
  SUBCASE("the kept one dies") {
    driver.step(WorkerGone{"busy", "killed"});
    driver.connect("next", {"train"}, 1);
    CHECK(driver.counts(1).running + driver.counts(2).running == 1);
  }
  SUBCASE("the job is cancelled: the worker has other jobs again") {
    driver.step(CancelExperiment{ExperimentId{1}});
    CHECK(driver.counts(3).running > 0);
  }
}

TEST_CASE("a worker that was only silent takes its charge back when it shows its leases") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 2));
  driver.connect("w", {"train"}, 2);
  driver.advance(limits::lease_timeout_ms);
  REQUIRE(driver.core().counters().failures_charged == 2);
  REQUIRE(driver.state("train:0") == "ready");
  WorkerHello hello = CoreDriver::hello("w", {"train"}, 2);
  hello.held = {driver.lease("train:0"), driver.lease("train:1")};
  const Effects welcome = driver.from("w", hello);
  CHECK(messages_to<Welcome>(welcome, "w")[0].dropped.empty());
  CHECK(driver.counts().running == 2);
  CHECK(driver.core().job(key_of("train:0"))->failures == FailureCounts{});
  CHECK(driver.core().job(key_of("train:1"))->problem.empty());
}

TEST_CASE("of leases shown again, one that must run alone is kept only alone") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 2));
  worker_dies(driver, "doomed", "train", 2);
  driver.connect("w", {"train"}, 2);
  driver.result("w", driver.lease("train:0"));
  // train:1 is alone on w, which falls silent and comes back with it and with a stranger's lease.
  REQUIRE(driver.state("train:1") == "leased");
  driver.advance(limits::lease_timeout_ms);
  WorkerHello hello = CoreDriver::hello("w", {"train"}, 2);
  hello.held = {driver.lease("train:1")};
  const Effects welcome = driver.from("w", hello);
  CHECK(messages_to<Welcome>(welcome, "w")[0].dropped.empty());
  const auto lost = static_cast<std::size_t>(FailureClass::lost_worker);
  CHECK(driver.core().job(key_of("train:1"))->failures[lost] == 1);  // the first one's
  driver.submit(PlanBuilder().kind("train").jobs("other", 3), 2);
  CHECK(driver.counts(2).running == 0);
}

TEST_CASE("a restart remembers who runs alone") {
  CoreDriver before;
  const PlanBuilder plan = PlanBuilder().jobs("train", 4);
  before.submit(plan);
  worker_dies(before, "doomed", "train", 1);
  CoreDriver after;
  after.restore(plan, before.stored());
  after.connect("w", {"train"}, 2);
  CHECK(leased(after, "train", 4) == std::vector<std::string>{"train:0"});
}

}  // namespace prefgrid
