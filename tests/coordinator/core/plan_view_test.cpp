#include "coordinator/plan.h"
#include "tests/coordinator/core/core_driver.h"

namespace prefgrid {

TEST_CASE("the core's view of a plan keeps keys, kinds, stages and edges") {
  Plan plan;
  plan.stages = {"train", "evaluate"};
  for (const char* name : {"train.lore", "rm_accuracy", "policy_accuracy"}) {
    PlannedJob job;
    job.spec.kind = name;
    job.spec.kind_version = 2;
    job.key = key_of(name);
    job.stage = plan.jobs.empty() ? "train" : "evaluate";
    for (std::uint32_t i = 0; i < plan.jobs.size(); ++i) job.dependencies.push_back(i);
    job.affinity = plan.jobs.size();
    plan.jobs.push_back(job);
  }
  const CorePlan core = core_plan(plan);
  REQUIRE(core.jobs.size() == 3);
  CHECK(core.kinds[core.jobs[1].kind] == KindVersion{"rm_accuracy", 2});
  CHECK(core.stages[core.jobs[2].stage] == "evaluate");
  CHECK(core.jobs[2].dependency_count == 2);
  CHECK(core.dependencies[core.jobs[2].first_dependency + 1] == 1);
  CHECK(core.jobs[2].affinity == 2);
}

}  // namespace prefgrid
