// Several experiments over one set of jobs; progress; cancelling.
#include "tests/coordinator/core/core_driver.h"

namespace prefgrid {

TEST_CASE("progress counts every job of every stage once") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 3).job("eval", {"train:0", "train:1"}));
  driver.connect("w", {"train", "eval"});
  driver.result("w", driver.lease("train:0"));
  const ExperimentProgress progress = driver.core().progress(ExperimentId{1});
  REQUIRE(progress.stages.size() == 2);
  CHECK(progress.stages[0].stage == "train");
  CHECK(progress.stages[0].counts.total == 3);
  CHECK(progress.stages[0].counts.done == 1);
  CHECK(progress.stages[1].counts.waiting == 1);
  CHECK(progress.counts.total == 4);
  CHECK_FALSE(progress.finished);
}

TEST_CASE("a second experiment reuses what is done and shares what runs") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train").job("eval:a", {"train"}));
  driver.connect("w", {"train", "eval"});
  driver.result("w", driver.lease("train"));
  const Effects second = driver.submit(
      PlanBuilder().job("train").job("eval:a", {"train"}).job("eval:b", {"train"}), 2);
  CHECK(events_of<history::Submitted>(second) == 1);
  CHECK(driver.counts(2).reused == 1);
  CHECK(driver.counts(1).reused == 0);
  CHECK(driver.counts(2).running >= 1);
  const Effects shared = driver.result("w", driver.lease("eval:a"));
  CHECK(shared.changed.size() == 2);
  CHECK(driver.core().finished(ExperimentId{1}));
  CHECK_FALSE(driver.core().finished(ExperimentId{2}));
}

TEST_CASE("cancelling spares the jobs that another experiment wants") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train:shared").job("train:own").job("train:waiting"), 1);
  driver.submit(PlanBuilder().job("train:shared"), 2);
  driver.connect("w", {"train"}, 2);
  const bool own_runs = driver.state("train:own") == "leased";
  const Effects cancelled = driver.step(CancelExperiment{ExperimentId{1}});
  CHECK(messages_to<CancelLease>(cancelled, "w").size() == (own_runs ? 1 : 0));
  CHECK(driver.state("train:shared") == "leased");
  CHECK(driver.state("train:own") == "cancelled");
  CHECK(driver.state("train:waiting") == "cancelled");
  CHECK(driver.core().finished(ExperimentId{1}));
  // Its result is of no interest any more.
  const Effects late = driver.result("w", driver.lease("train:own"));
  CHECK(facts_of<ResultFact>(late) == 0);
  CHECK(messages_to<Settled>(late, "w").size() == 1);
  driver.step(CancelExperiment{ExperimentId{2}});
  CHECK(driver.state("train:shared") == "cancelled");
  driver.step(CancelExperiment{ExperimentId{99}});
}

TEST_CASE("submitting again what was cancelled runs it") {
  CoreDriver driver;
  const PlanBuilder plan = PlanBuilder().job("train").job("eval", {"train"});
  driver.submit(plan, 1);
  driver.step(CancelExperiment{ExperimentId{1}});
  const Effects again = driver.submit(plan, 2);
  CHECK(facts_of<JobFact>(again) == 2);  // the store must not think them cancelled
  driver.connect("w", {"train", "eval"});
  driver.result("w", driver.lease("train"));
  driver.result("w", driver.lease("eval"));
  CHECK(driver.counts(2).done == 2);
}

TEST_CASE("a revived experiment runs what was cancelled, with the priority it is given") {
  CoreDriver driver;
  const PlanBuilder plan = PlanBuilder().job("train:a").job("train:b").job("eval", {"train:a"});
  driver.submit(plan, 1);
  driver.connect("w", {"train", "eval"}, 2);
  const LeaseId revoked = driver.lease("train:a");
  driver.result("w", driver.lease("train:b"));
  const Effects cancelled = driver.step(CancelExperiment{ExperimentId{1}});
  REQUIRE(messages_to<CancelLease>(cancelled, "w").size() == 1);
  driver.from("w", LeaseReturned{revoked});

  driver.submit(PlanBuilder().jobs("train:other", 8), 2);
  REQUIRE(driver.counts(2).ready > 0);
  const Effects revived = driver.step(ReviveExperiment{ExperimentId{1}, 5});
  CHECK(facts_of<JobFact>(revived) >= 2);
  CHECK(events_of<history::Submitted>(revived) == 1);
  CHECK_FALSE(driver.core().progress(ExperimentId{1}).cancelled);
  CHECK(driver.core().progress(ExperimentId{1}).priority == 5);
  CHECK(driver.counts().done == 1);
  CHECK(driver.counts().cancelled == 0);
  // More urgent than the other experiment's jobs, which came first.
  driver.result("w", driver.lease("train:other:0"));
  CHECK(driver.state("train:a") == "leased");
  CHECK(driver.lease("train:a").attempt == revoked.attempt + 1);
  // A second time is nothing.
  CHECK(driver.step(ReviveExperiment{ExperimentId{1}, 7}).facts.empty());
  CHECK(driver.core().progress(ExperimentId{1}).priority == 5);
}

TEST_CASE("numerics profiles of committed results are counted") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 3));
  driver.connect("w", {"train"}, 3);
  for (int i = 0; i < 3; ++i) {
    ResultMessage message{driver.lease("train:" + std::to_string(i)), {}, ""};
    message.result.profile.device = i == 2 ? "cuda" : "cpu";
    driver.from("w", message);
  }
  const auto profiles = driver.core().result_profiles();
  REQUIRE(profiles.size() == 2);
  CHECK(profiles.begin()->second == 2);
}

}  // namespace prefgrid
