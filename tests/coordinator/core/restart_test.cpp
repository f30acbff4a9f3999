// What a new coordinator makes of the old one's facts.
#include "tests/coordinator/core/core_driver.h"

namespace prefgrid {
namespace {

const PlanBuilder three =
    PlanBuilder().job("train").job("eval:a", {"train"}).job("eval:b", {"train"});

}  // namespace

TEST_CASE("a restart keeps finished work and the leases that workers show") {
  CoreDriver before;
  before.submit(three);
  before.connect("w", {"train", "eval"}, 2);
  before.result("w", before.lease("train"));
  REQUIRE(before.counts().running == 2);

  CoreDriver after;
  after.restore(three, before.stored());
  CHECK(after.state("train") == "done");
  CHECK(after.counts().running == 2);
  WorkerHello hello = CoreDriver::hello("w", {"train", "eval"}, 2);
  hello.held = {before.lease("eval:a"), before.lease("eval:b")};
  const Effects welcome = after.from("new connection", hello);
  CHECK(messages_to<Welcome>(welcome, "new connection")[0].dropped.empty());
  CHECK(leases_to(welcome, "new connection").empty());
  after.result("new connection", before.lease("eval:a"));
  after.result("new connection", before.lease("eval:b"));
  CHECK(after.core().finished(ExperimentId{1}));
  CHECK(after.core().counters().leases_granted == 0);
}

TEST_CASE("attempts go on where the old coordinator stopped") {
  CoreDriver before;
  before.submit(three);
  before.connect("w", {"train"});
  CoreDriver after;
  after.restore(three, before.stored());
  // The grant was written but never arrived: the worker shows nothing.
  const Effects welcome = after.connect("w", {"train"});
  CHECK(leases_to(welcome, "w") == std::vector{LeaseId{key_of("train"), 2}});
  CHECK(after.core().counters().failures_charged == 0);
}

TEST_CASE("a worker that never comes back after a restart is not charged") {
  CoreDriver before;
  before.submit(three);
  before.connect("w", {"train"});
  SUBCASE("it times out") {
    CoreDriver after;
    after.restore(three, before.stored());
    after.advance(limits::lease_timeout_ms - 1);
    CHECK(after.state("train") == "leased");
    after.advance(1);
    CHECK(after.state("train") == "ready");
    CHECK(after.core().counters().failures_charged == 0);
  }
  SUBCASE("the loop knows that it died with the old coordinator") {
    CoreDriver after;
    after.restore(three, before.stored());
    after.step(WorkerGone{"w", "it was a child of the old coordinator"});
    CHECK(after.state("train") == "ready");
    CHECK(after.core().counters().failures_charged == 0);
  }
}

TEST_CASE("a result that comes before the hello is committed") {
  CoreDriver before;
  before.submit(three);
  before.connect("w", {"train"});
  CoreDriver after;
  after.restore(three, before.stored());
  CHECK(facts_of<ResultFact>(after.result("unknown peer", before.lease("train"))) == 1);
  CHECK(after.state("eval:a") == "ready");
}

TEST_CASE("failure counts and quarantine survive a restart") {
  CoreDriver before;
  before.submit(three);
  before.connect("w", {"train"});
  before.failure("w", before.lease("train"));
  before.advance(1'000);
  before.failure("w", before.lease("train"));

  CoreDriver between;
  between.restore(three, before.stored());
  CHECK(between.state("train") == "ready");  // a restart ends every back-off
  between.connect("w", {"train"});
  CHECK(between.lease("train").attempt == 3);
  between.failure("w", between.lease("train"));
  CHECK(between.state("train") == "quarantined");

  CoreDriver after;
  after.restore(three, between.stored());
  CHECK(after.state("train") == "quarantined");
  CHECK(after.state("eval:a") == "blocked");
  CHECK(after.core().failed_jobs(ExperimentId{1}, 5).size() == 1);
  CHECK(after.core().finished(ExperimentId{1}));
}

TEST_CASE("a cancelled experiment stays cancelled after a restart") {
  CoreDriver before;
  before.submit(three);
  before.step(CancelExperiment{ExperimentId{1}});
  CoreDriver after;
  after.restore(three, before.stored(), 1, true);
  CHECK(after.core().progress(ExperimentId{1}).cancelled);
  CHECK(after.counts().cancelled == 3);
  after.connect("w", {"train"});
  CHECK(after.counts().running == 0);
}

TEST_CASE("an experiment that was cancelled while another wanted all its jobs stays cancelled") {
  CoreDriver before;
  before.submit(three, 1);
  before.submit(three, 2);
  CHECK(facts_of<JobFact>(before.step(CancelExperiment{ExperimentId{1}})) == 0);
  CoreDriver after;
  after.step({JobsRestored{before.stored()}, CoreDriver::restored(three, 1, true),
              CoreDriver::restored(three, 2)});
  CHECK(after.core().progress(ExperimentId{1}).cancelled);
  CHECK(after.core().finished(ExperimentId{1}));
  after.connect("w", {"train"});
  CHECK(after.state("train") == "leased");
  after.step(CancelExperiment{ExperimentId{2}});
  CHECK(after.state("train") == "cancelled");
}

TEST_CASE("a restart runs of a cancelled experiment only what a later one took up") {
  const PlanBuilder some = PlanBuilder().job("train").job("eval:a", {"train"});
  CoreDriver before;
  before.submit(three, 1);
  before.step(CancelExperiment{ExperimentId{1}});
  before.submit(some, 2);
  CoreDriver after;
  after.step({JobsRestored{before.stored()}, CoreDriver::restored(three, 1, true),
              CoreDriver::restored(some, 2)});
  CHECK(after.core().progress(ExperimentId{1}).cancelled);
  CHECK_FALSE(after.core().progress(ExperimentId{2}).cancelled);
  after.connect("w", {"train", "eval"}, 4);
  after.result("w", after.lease("train"));
  after.result("w", after.lease("eval:a"));
  CHECK(after.core().finished(ExperimentId{2}));
  CHECK(after.state("eval:b") == "cancelled");
}

TEST_CASE("a retry survives a restart, budgets and all") {
  CoreDriver before;
  before.submit(three);
  before.connect("w", {"train"});
  for (std::uint32_t i = 0; i < limits::attempts_per_job; ++i) {
    before.failure("w", before.lease("train"));
    before.from("w", Heartbeat{});
    before.advance(4'000);
    before.from("w", Heartbeat{});
  }
  REQUIRE(before.state("train") == "quarantined");
  before.step(RetryFailed{ExperimentId{1}});
  CoreDriver after;
  after.restore(three, before.stored());
  CHECK(after.state("train") == "leased");
  CHECK(after.lease("train").attempt == 0);  // of the old coordinator; not given again
  CHECK(after.core().job(key_of("train"))->failures == FailureCounts{});
  CHECK(after.state("eval:a") == "waiting");
}

TEST_CASE("records that no experiment names serve a later one") {
  CoreDriver before;
  before.submit(three);
  before.connect("w", {"train"});
  before.result("w", before.lease("train"));
  CoreDriver after;
  after.step(JobsRestored{before.stored()});
  CHECK(after.core().why_waiting(key_of("train")).empty());
  after.submit(three, 2);
  CHECK(after.counts(2).done == 1);
  CHECK(after.counts(2).reused == 1);
  CHECK(after.state("eval:a") == "ready");
}

}  // namespace prefgrid
