// Failure classes, budgets, quarantine and what becomes of the jobs behind.
#include "tests/coordinator/core/core_driver.h"

namespace prefgrid {
namespace {

// Fails the job under whatever attempt it is out, letting each back-off pass.
void fail_until_quarantined(CoreDriver& driver, const std::string& worker, const std::string& job,
                            FailureClass failure_class = FailureClass::error) {
  for (std::uint32_t i = 0; i < limits::attempts_per_job; ++i) {
    REQUIRE(driver.state(job) == "leased");
    driver.failure(worker, driver.lease(job), failure_class);
    for (int s = 0; s < 30 && driver.state(job) == "failed"; ++s) {
      driver.from(worker, Heartbeat{});
      driver.advance(1'000);
    }
  }
}

}  // namespace

TEST_CASE("a failed job rests, runs again, and is quarantined when its budget is spent") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  const Effects failed = driver.failure("w", driver.lease("train"));
  CHECK(messages_to<Settled>(failed, "w").size() == 1);
  CHECK(events_of<history::Failed>(failed) == 1);
  CHECK(driver.state("train") == "failed");
  driver.advance(999);
  CHECK(driver.state("train") == "failed");
  driver.advance(1);
  CHECK(driver.lease("train").attempt == 2);
  driver.failure("w", driver.lease("train"));
  driver.advance(2'000);
  const Effects last = driver.failure("w", driver.lease("train"));
  CHECK(events_of<history::Quarantined>(last) == 1);
  CHECK(driver.state("train") == "quarantined");
  CHECK(driver.counts().failed == 1);
  const auto failures = driver.core().failed_jobs(ExperimentId{1}, 10);
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].message == "it broke");
  CHECK(driver.core().why_waiting(key_of("train")).find("it broke") != std::string::npos);
}

TEST_CASE("each class has its own budget") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  for (const auto failure_class :
       {FailureClass::error, FailureClass::out_of_memory, FailureClass::crash,
        FailureClass::time_limit, FailureClass::error, FailureClass::crash}) {
    REQUIRE(driver.state("train") == "leased");
    driver.failure("w", driver.lease("train"), failure_class);
    CHECK(driver.state("train") == "failed");
    driver.from("w", Heartbeat{});
    driver.advance(5'000);
    driver.from("w", Heartbeat{});
  }
  driver.failure("w", driver.lease("train"), FailureClass::crash);
  CHECK(driver.state("train") == "quarantined");
}

TEST_CASE("pre-emption is never charged, and the leaving worker gets nothing new") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("leaving", {"train"});
  for (int i = 0; i < 10; ++i) {
    const LeaseId lease = driver.lease("train");
    const Effects returned = i % 2 == 0 ? driver.from("leaving", LeaseReturned{lease})
                                        : driver.failure("leaving", lease, FailureClass::preempted);
    CHECK(leases_to(returned, "leaving").empty());
    CHECK(driver.state("train") == "ready");
    driver.from("leaving", Heartbeat{});
    driver.advance(5'000);
    REQUIRE(driver.state("train") == "leased");
  }
  CHECK(driver.core().job(key_of("train"))->failures == FailureCounts{});
}

TEST_CASE("a lost worker charges what it was running and only hands back its queue") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 40));
  driver.connect("w", {"train"}, 2);
  REQUIRE(driver.counts().running == 4);
  const Effects lost = driver.advance(limits::lease_timeout_ms);
  CHECK(events_of<history::LeaseLost>(lost) == 4);
  CHECK(events_of<history::Failed>(lost) == 2);
  CHECK(events_of<history::WorkerLeft>(lost) == 1);
  CHECK(driver.counts().ready == 40);
  CHECK(driver.core().workers().empty());
}

TEST_CASE("a job that kills its workers is quarantined and the others run") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("poison").job("good"));
  for (int i = 0; i < 6 && driver.state("poison") != "quarantined"; ++i) {
    driver.connect("w" + std::to_string(i), {"poison"});
    driver.advance(limits::lease_timeout_ms);
    driver.advance(1'000);
  }
  CHECK(driver.state("poison") == "quarantined");
  CHECK(driver.core().job(key_of("poison"))->problem.find("was lost") != std::string::npos);
  driver.connect("w", {"good"});
  driver.result("w", driver.lease("good"));
  CHECK(driver.core().finished(ExperimentId{1}));
}

TEST_CASE("jobs behind a quarantined one are blocked and all others run to the end") {
  CoreDriver driver;
  driver.submit(PlanBuilder()
                    .job("train:a")
                    .job("train:b")
                    .job("adapt:a", {"train:a"})
                    .job("eval:a", {"adapt:a", "train:b"})
                    .job("eval:b", {"train:b"}));
  driver.connect("w", {"train", "adapt", "eval"});
  while (driver.state("train:b") != "done") {
    if (driver.state("train:a") == "leased") driver.failure("w", driver.lease("train:a"));
    if (driver.state("train:b") == "leased") driver.result("w", driver.lease("train:b"));
    driver.from("w", Heartbeat{});
    driver.advance(1'000);
  }
  driver.advance(2'000);
  if (driver.state("eval:b") == "leased") driver.result("w", driver.lease("eval:b"));
  while (driver.state("train:a") != "quarantined") {
    if (driver.state("train:a") == "leased") driver.failure("w", driver.lease("train:a"));
    driver.from("w", Heartbeat{});
    driver.advance(1'000);
  }
  CHECK(driver.state("adapt:a") == "blocked");
  CHECK(driver.state("eval:a") == "blocked");
  CHECK(driver.state("eval:b") == "done");
  CHECK(driver.counts().blocked == 2);
  CHECK(driver.core().finished(ExperimentId{1}));
  CHECK(driver.core().why_waiting(key_of("eval:a")).find("will not come") != std::string::npos);
}

TEST_CASE("retry runs exactly the quarantined jobs again, and frees those behind them") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train").job("eval", {"train"}).job("eval:other"));
  driver.connect("w", {"train", "eval"}, 2);
  driver.result("w", driver.lease("eval:other"));
  fail_until_quarantined(driver, "w", "train");
  REQUIRE(driver.state("eval") == "blocked");

  const Effects retried = driver.step(RetryFailed{ExperimentId{1}});
  CHECK(events_of<history::Retried>(retried) == 1);
  CHECK(leases_to(retried, "w") == std::vector{LeaseId{key_of("train"), 4}});
  CHECK(driver.state("eval") == "waiting");
  CHECK(driver.core().job(key_of("train"))->failures == FailureCounts{});
  driver.result("w", driver.lease("train"));
  driver.result("w", driver.lease("eval"));
  CHECK(driver.counts().done == 3);
}

TEST_CASE("retry does not wait for a back-off, and gives the resting job a fresh budget") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  driver.failure("w", driver.lease("train"));
  driver.advance(1'000);
  driver.failure("w", driver.lease("train"));
  REQUIRE(driver.state("train") == "failed");
  const Effects retried = driver.step(RetryFailed{ExperimentId{1}});
  CHECK(leases_to(retried, "w") == std::vector{LeaseId{key_of("train"), 3}});
  CHECK(driver.core().job(key_of("train"))->failures == FailureCounts{});
  // The back-off's own timer finds nothing to do any more.
  driver.failure("w", driver.lease("train"));
  CHECK(driver.state("train") == "failed");
  driver.advance(999);
  CHECK(driver.state("train") == "failed");
  driver.advance(1);
  CHECK(driver.state("train") == "leased");
}

TEST_CASE("retry leaves a cancelled experiment alone, and what another one waits for runs") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train").job("eval:a", {"train"}), 1);
  driver.submit(PlanBuilder().job("train").job("eval:b", {"train"}), 2);
  driver.connect("w", {"train", "eval"});
  fail_until_quarantined(driver, "w", "train");
  driver.step(CancelExperiment{ExperimentId{1}});
  // The shared job is wanted by the other one; the cancelled one's own stays cancelled.
  driver.step(RetryFailed{ExperimentId{1}});
  CHECK(driver.state("train") == "quarantined");
  driver.step(RetryFailed{ExperimentId{2}});
  CHECK(driver.state("train") == "leased");
  CHECK(driver.state("eval:b") == "waiting");
  CHECK(driver.state("eval:a") == "cancelled");
}

TEST_CASE("a late result frees a quarantined job and those behind it") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train").job("eval", {"train"}));
  driver.connect("w", {"train"});
  const LeaseId first = driver.lease("train");
  fail_until_quarantined(driver, "w", "train");
  REQUIRE(driver.state("eval") == "blocked");
  CHECK(facts_of<ResultFact>(driver.result("w", first)) == 1);
  CHECK(driver.state("train") == "done");
  CHECK(driver.state("eval") == "ready");
}

TEST_CASE("a failure of an old attempt charges nothing") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("a", {"train"});
  const LeaseId first = driver.lease("train");
  driver.failure("a", first);
  const Effects again = driver.failure("a", first);
  CHECK(messages_to<Settled>(again, "a").size() == 1);
  CHECK(driver.core().counters().failures_charged == 1);
  CHECK(driver.state("train") == "failed");
}

}  // namespace prefgrid
