#include "coordinator/plan_diff.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "tests/coordinator/plan/builders.h"

using namespace prefgrid;           // NOLINT: tests only
using namespace prefgrid::testing;  // NOLINT: tests only

namespace {

Plan good_plan(const std::string& text, const Catalog& rows = catalog()) {
  auto plan = plan_of(text, users(4), digest(), rows);
  REQUIRE(plan.ok());
  return *std::move(plan);
}

// Everything of `before` is finished; how does `after` stand?
PlanDiff diff_after(const Plan& before, const Plan& after, const Catalog& rows = catalog()) {
  std::unordered_set<JobKey> done;
  for (const PlannedJob& job : before.jobs) done.insert(job.key);
  const std::vector<Plan> earlier = {before};
  return diff_plan(
      after, earlier,
      [&](const JobKey& key) { return done.contains(key) ? Standing::done : Standing::to_run; },
      rows);
}

const StageCounts& stage_of(const PlanDiff& diff, const std::string& name) {
  for (const StageCounts& stage : diff.stages) {
    if (stage.stage == name) return stage;
  }
  FAIL("no stage " << name);
  return diff.stages.front();
}

std::string reasons_of(const PlanDiff& diff, const std::string& stage) {
  std::string out;
  for (const RerunReason& rerun : diff.reruns) {
    if (rerun.stage == stage) out += rerun.reason + " x" + std::to_string(rerun.jobs) + ";";
  }
  return out;
}

}  // namespace

TEST_CASE("a first run computes everything and re-runs nothing") {
  const Plan plan = good_plan(base_spec);
  const PlanDiff diff = diff_plan(
      plan, {}, [](const JobKey&) { return Standing::to_run; }, catalog());
  CHECK(diff.left.run == plan.jobs.size());
  CHECK(diff.reruns.empty());
  for (const StageCounts& stage : diff.stages) {
    CHECK(stage.total == count_stage(plan, stage.stage));
    CHECK(stage.left.run == stage.total);
    CHECK(stage.reuse == 0);
  }
}

TEST_CASE("the same spec again has no job to run") {
  const PlanDiff diff = diff_after(good_plan(base_spec), good_plan(base_spec));
  CHECK(diff.left.run == 0);
  CHECK(diff.reruns.empty());
  CHECK(plan_diff_text(diff, "grid.yaml").find("0 jobs to run") != std::string::npos);
}

TEST_CASE("a rank changed from its default names both values in every stage that re-runs") {
  const std::string lone =
      replaced(base_spec, "  - lore: {features_from: bow, rank: [1, 5]}\n", "");
  const PlanDiff diff =
      diff_after(good_plan(lone), good_plan(replaced(lone, "rank: 5", "rank: 6")));
  CHECK(reasons_of(diff, "pretrain") == "");
  CHECK(reasons_of(diff, "embed") == "");
  CHECK(reasons_of(diff, "train") == "lore: rank changed 5 -> 6 x4;");
  CHECK(reasons_of(diff, "adapt") == "lore: rank changed 5 -> 6 x8;");
  CHECK(reasons_of(diff, "rm_accuracy") == "lore: rank changed 5 -> 6 x16;");
  CHECK(stage_of(diff, "rm_accuracy").reuse == 16);
  CHECK(plan_diff_text(diff, "grid.yaml").find("re-run 4 because lore: rank changed 5 -> 6") !=
        std::string::npos);
}

TEST_CASE("one more rank is new, not a re-run") {
  const PlanDiff diff =
      diff_after(good_plan(base_spec), good_plan(replaced(base_spec, "[1, 5]", "[1, 2, 5]")));
  CHECK(diff.left.run > 0);
  CHECK(diff.reruns.empty());
}

TEST_CASE("a change upstream is the reason of everything that builds on it") {
  const PlanDiff diff =
      diff_after(good_plan(base_spec),
                 good_plan(replaced(base_spec, "- global_bt\n", "- global_bt: {epochs: 3}\n")));
  CHECK(reasons_of(diff, "embed") == "global_bt: epochs changed 1 -> 3 x4;");
  CHECK(reasons_of(diff, "rm_accuracy") == "global_bt: epochs changed 1 -> 3 x32;");
}

TEST_CASE("a model's field, an evaluation field and the data are named") {
  const Plan before = good_plan(base_spec);
  PlanDiff diff =
      diff_after(before, good_plan(replaced(base_spec, "tokens: 1000", "tokens: 1500")));
  CHECK(reasons_of(diff, "pretrain") == "pretrain: tokens changed 1000 -> 1500 x1;");
  CHECK(reasons_of(diff, "generate").find("pretrain: tokens changed 1000 -> 1500") == 0);
  diff = diff_after(before, good_plan(replaced(base_spec, "policy_items: 2", "policy_items: 3")));
  CHECK(reasons_of(diff, "policy_accuracy").find("items changed 2 -> 3") != std::string::npos);
  const auto other = plan_of(base_spec, users(4), digest("other"));
  REQUIRE(other.ok());
  diff = diff_after(before, *other);
  CHECK(reasons_of(diff, "pretrain") == "dataset changed x2;");
}

TEST_CASE("new versions of a kind and of a method are named") {
  const Plan before = good_plan(base_spec);
  Catalog rows = catalog();
  for (KindRow& row : rows.kinds) row.version += row.name == "rm_accuracy" ? 1 : 0;
  PlanDiff diff = diff_after(before, good_plan(base_spec, rows), rows);
  CHECK(reasons_of(diff, "rm_accuracy").find("kind version 1 -> 2") != std::string::npos);
  CHECK(diff.left.run == 48);
  rows = catalog();
  for (MethodRow& row : rows.methods) row.version += row.name == "icl" ? 1 : 0;
  diff = diff_after(before, good_plan(base_spec, rows), rows);
  CHECK(reasons_of(diff, "generate") == "icl: method version changed 1 -> 2 x8;");
}

TEST_CASE("an unfinished job of an earlier run is just run") {
  const Plan before = good_plan(base_spec);
  const std::vector<Plan> earlier = {before};
  const PlanDiff diff = diff_plan(
      good_plan(replaced(base_spec, "rank: 5", "rank: 6")), earlier,
      [](const JobKey&) { return Standing::to_run; }, catalog());
  CHECK(diff.reruns.empty());
}

TEST_CASE("a job that was planned before and not finished is no re-run, whatever else is gone") {
  const Plan before = good_plan(base_spec);
  const std::vector<Plan> earlier = {before};
  const auto finished = [&](const JobKey& key) {  // all but the adaptations of rank 1
    for (const PlannedJob& job : before.jobs) {
      if (job.key == key) {
        const bool open = job.stage == "adapt" && job.cells[0].config == "features_from=bow,rank=1";
        return open ? Standing::to_run : Standing::done;
      }
    }
    return Standing::to_run;
  };
  const PlanDiff diff =
      diff_plan(good_plan(replaced(base_spec, "[1, 5]", "[1]")), earlier, finished, catalog());
  CHECK(diff.left.run == 4);
  CHECK(diff.reruns.empty());
}

TEST_CASE("the difference as JSON has stages and the number to run") {
  const Plan plan = good_plan(base_spec);
  const PlanDiff diff = diff_plan(
      plan, {}, [](const JobKey&) { return Standing::to_run; }, catalog());
  const std::vector<std::string> notes = {"user \"\xFF\" is left out"};
  const auto json = nlohmann::json::parse(plan_diff_json(diff, notes));
  CHECK(json["run"] == plan.jobs.size());
  REQUIRE(json["stages"].size() == 7);
  CHECK(json["stages"][0]["stage"] == "pretrain");
  CHECK(json["stages"][0]["total"] == 2);
  CHECK(json["stages"][0]["reuse"] == 0);
  CHECK(json["stages"][0]["run"] == 2);
  CHECK(json["notes"].size() == 1);
}

TEST_CASE("failed jobs and those that need them are not counted as jobs to run") {
  // One of two pretrain jobs has failed for good; the other and the bag of words run.
  const Plan plan = good_plan(base_spec);
  const JobKey failed = plan.jobs[0].key;
  REQUIRE(plan.jobs[0].stage == "pretrain");
  const PlanDiff diff = diff_plan(
      plan, {},
      [&](const JobKey& key) { return key == failed ? Standing::failed : Standing::to_run; },
      catalog());
  CHECK(diff.left.failed == 1);
  CHECK(diff.left.blocked > 0);
  CHECK(diff.left.run + diff.left.blocked + 1 == plan.jobs.size());
  CHECK(stage_of(diff, "pretrain").left.run == 1);
  CHECK(stage_of(diff, "pretrain").left.failed == 1);
  const std::string text = plan_diff_text(diff, "grid.yaml");
  CHECK(text.find("; 1 failed, " + std::to_string(diff.left.blocked) +
                  " blocked by them: `prefgrid retry grid.yaml` lets them run again\n") !=
        std::string::npos);
}
