// Attempts, acknowledgements, late and repeated results.
#include "tests/coordinator/core/core_driver.h"

namespace prefgrid {

TEST_CASE("a job is leased, committed once and acknowledged after its facts") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  const Effects given = driver.connect("w", {"train"});
  REQUIRE(leases_to(given, "w") == std::vector{LeaseId{key_of("train"), 1}});
  CHECK(facts_of<JobFact>(given) == 1);
  CHECK(driver.state("train") == "leased");

  const Effects done = driver.result("w", driver.lease("train"));
  CHECK(facts_of<ResultFact>(done) == 1);
  CHECK(events_of<history::Done>(done) == 1);
  CHECK(messages_to<Settled>(done, "w").size() == 1);
  CHECK(done.changed == std::vector{ExperimentId{1}});
  CHECK(driver.state("train") == "done");
  CHECK(driver.core().finished(ExperimentId{1}));
}

TEST_CASE("a result that comes again is acknowledged again and not committed again") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  driver.result("w", driver.lease("train"));
  const Effects again = driver.result("w", driver.lease("train"));
  CHECK(facts_of<ResultFact>(again) == 0);
  CHECK(again.facts.empty());
  CHECK(messages_to<Settled>(again, "w").size() == 1);
  CHECK(driver.core().counters().results_dropped == 1);
}

TEST_CASE("a late result of a lost lease is kept and the running attempt is cancelled") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("slow", {"train"});
  const LeaseId first = driver.lease("train");
  driver.advance(limits::lease_timeout_ms);
  CHECK(driver.state("train") == "ready");
  driver.connect("quick", {"train"});
  REQUIRE(driver.lease("train") == LeaseId{first.job, 2});

  const Effects late = driver.result("slow", first);
  CHECK(facts_of<ResultFact>(late) == 1);
  CHECK(messages_to<Settled>(late, "slow").size() == 1);
  REQUIRE(messages_to<CancelLease>(late, "quick").size() == 1);
  CHECK(messages_to<CancelLease>(late, "quick")[0].lease.attempt == 2);
  CHECK(driver.state("train") == "done");
  // The running attempt ends nevertheless: nothing new is written.
  CHECK(facts_of<ResultFact>(driver.result("quick", {first.job, 2})) == 0);
}

TEST_CASE("a result under an attempt that was never issued is dropped and counted") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  for (const Attempt forged : {0u, 2u, 4'000'000'000u}) {
    const Effects effects = driver.result("w", {key_of("train"), forged});
    CHECK(facts_of<ResultFact>(effects) == 0);
    CHECK(events_of<history::ResultDropped>(effects) == 1);
    CHECK(messages_to<Settled>(effects, "w").size() == 1);
  }
  const Effects unknown = driver.result("w", {key_of("no such job"), 1});
  CHECK(events_of<history::ResultDropped>(unknown) == 1);
  CHECK(driver.state("train") == "leased");
}

TEST_CASE("a job that is not deterministic takes only its newest attempt's result") {
  CoreDriver driver;
  driver.submit(PlanBuilder().not_deterministic().job("exec"));
  driver.connect("slow", {"exec"});
  const LeaseId first = driver.lease("exec");
  driver.advance(limits::lease_timeout_ms);
  driver.connect("quick", {"exec"});
  CHECK(facts_of<ResultFact>(driver.result("slow", first)) == 0);
  CHECK(driver.state("exec") == "leased");
  CHECK(facts_of<ResultFact>(driver.result("quick", driver.lease("exec"))) == 1);
}

TEST_CASE("a result waits for its artefacts and commits when the last one is complete") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  const ResultMessage message{driver.lease("train"), {}, "log"};
  const Effects early = driver.from("w", message, {digest_of("a"), digest_of("b"), digest_of("a")});
  CHECK(early.facts.empty());
  CHECK(messages_to<Settled>(early, "w").empty());
  // The agent sends it again; still one commit.
  CHECK(driver.from("w", message, {digest_of("b"), digest_of("a")}).facts.empty());
  CHECK(driver.step(ArtifactComplete{digest_of("b")}).facts.empty());
  CHECK(driver.step(ArtifactComplete{digest_of("b")}).facts.empty());
  const Effects complete = driver.step(ArtifactComplete{digest_of("a")});
  CHECK(facts_of<ResultFact>(complete) == 1);
  CHECK(messages_to<Settled>(complete, "w").size() == 1);
  CHECK(driver.step(ArtifactComplete{digest_of("a")}).facts.empty());
}

TEST_CASE("results that wait for artefacts are bounded in number") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 600));
  driver.connect("w", {"train"}, 600);
  for (int i = 0; i < 600; ++i) {
    const std::string name = "train:" + std::to_string(i);
    driver.from("w", ResultMessage{driver.lease(name), {}, ""}, {digest_of(name)});
  }
  CHECK(driver.step(ArtifactComplete{digest_of("train:0")}).facts.empty());  // forgotten
  CHECK(facts_of<ResultFact>(driver.step(ArtifactComplete{digest_of("train:599")})) == 1);
}

TEST_CASE("progress of a lease that is not current is answered with its cancellation") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  CHECK(driver.from("w", Progress{driver.lease("train"), 5, 10, 0.5}).sends.empty());
  CHECK(driver.core().job(key_of("train"))->progress->step == 5);
  const Effects stale = driver.from("w", Progress{{key_of("train"), 7}, 5, 10, 0.5});
  CHECK(messages_to<CancelLease>(stale, "w").size() == 1);
}

TEST_CASE("leases that could not be sent are ready again at once, uncharged") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  const LeaseId first = driver.lease("train");
  driver.step(LeasesUndelivered{PeerId{"w"}, {first}});
  CHECK(driver.state("train") == "ready");
  CHECK(driver.core().job(first.job)->failures == FailureCounts{});
  driver.connect("other", {"train"});
  CHECK(driver.lease("train").attempt == 2);
}

TEST_CASE("leases that nothing is heard of are sent again under the same attempt") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 2));
  driver.connect("w", {"train"}, 2);
  Effects later;
  for (int i = 0; i < 20; ++i) {
    driver.from("w", Progress{driver.lease("train:0"), 1, 2, {}});
    Effects step = driver.advance(limits::heartbeat_ms);
    std::move(step.sends.begin(), step.sends.end(), std::back_inserter(later.sends));
  }
  CHECK(leases_to(later, "w") == std::vector{LeaseId{key_of("train:1"), 1}});
}

// Found by the simulation: the lease stayed with the live worker for ever.
TEST_CASE(
    "a lease taken up again by a hello that was overtaken by its cancellation is sent again") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  const LeaseId lease = driver.lease("train");
  driver.advance(limits::lease_timeout_ms);
  REQUIRE(driver.state("train") == "ready");
  CHECK(messages_to<CancelLease>(driver.from("w", Progress{lease, 1, 2, {}}), "w").size() == 1);
  WorkerHello stale = CoreDriver::hello("w", {"train"});
  stale.held = {lease};
  driver.from("w", stale);
  REQUIRE(driver.state("train") == "leased");
  Effects later;
  for (int i = 0; i < 20; ++i) {
    driver.from("w", Heartbeat{});
    Effects step = driver.advance(limits::heartbeat_ms);
    std::move(step.sends.begin(), step.sends.end(), std::back_inserter(later.sends));
  }
  CHECK(leases_to(later, "w") == std::vector{lease});
}

}  // namespace prefgrid
