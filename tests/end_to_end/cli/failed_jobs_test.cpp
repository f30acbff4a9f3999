// Scenario of all: train.lore fails for good; 14 jobs need it.
#include <doctest/doctest.h>

#include "tests/end_to_end/cli/sandbox.h"

namespace prefgrid {
namespace {

const std::string left_over = "0 jobs to run; 1 failed, 14 blocked by them: `prefgrid retry ";

struct FailedRun {
  Sandbox sandbox;
  Finished run;
};

// Made once; tests work on copies of its store.
const FailedRun& failed_run() {
  static const FailedRun* const made = [] {
    static FailedRun first;
    const FailingJobs failing("train.lore");
    first.run = first.sandbox.prefgrid("run grid.yaml");
    return &first;
  }();
  return *made;
}

// A folder in which it has happened.
class FailedSandbox : public Sandbox {
 public:
  FailedSandbox() {
    const Finished copy = shell("cp -a " + (failed_run().sandbox.path() / "runs").string() + " .");
    REQUIRE(copy.status == 0);
  }
};

}  // namespace

TEST_CASE("a run with failed cells ends with exit code 3 and says how to try them again") {
  const FailedSandbox sandbox;
  const Finished& run = failed_run().run;
  INFO(run.output);
  CHECK(run.status == 3);
  CHECK(contains(run.output, "no luck"));
  CHECK(contains(run.output, left_over + "grid.yaml` lets them run again\n"));
  CHECK(sandbox.prefgrid("results grid").status == 3);
}

TEST_CASE("plan and run say the same of jobs that have failed") {
  const FailedSandbox sandbox;
  const Finished plan = sandbox.prefgrid("plan grid.yaml --store runs/grid");
  const Finished run = sandbox.prefgrid("run grid.yaml --store runs/grid");
  const std::string said = left_over + "grid.yaml --store runs/grid` lets them run again\n";
  CHECK(plan.status == 0);
  CHECK(plan.output.ends_with("\n" + said));
  CHECK(run.status == 3);
  CHECK(run.output.starts_with(said));
}

TEST_CASE("retry runs exactly what failed and what waited for it") {
  const FailedSandbox sandbox;
  const Finished retry = sandbox.prefgrid("retry grid.yaml --failed");
  INFO(retry.output);
  CHECK(retry.status == 0);
  CHECK(retry.output.starts_with("grid: 1 failed job may run again, and 14 that waited for them"));
  CHECK(sandbox.prefgrid("plan grid.yaml").output.ends_with("\n15 jobs to run\n"));
  const Finished run = sandbox.prefgrid("run grid.yaml");
  CHECK(run.status == 0);
  CHECK(run.output.starts_with("15 jobs to run\n"));
  CHECK(sandbox.prefgrid("retry grid").output == "grid: no job has failed for good\n");
}

TEST_CASE("a failed job is found by its state, explained with times, and its log is printed") {
  const FailedSandbox sandbox;
  const Finished jobs = sandbox.shell("$P jobs grid --state failed | tail -n +2");
  CHECK(lines_of(jobs.output) == 1);
  CHECK(contains(jobs.output, "lore features_from=bow,rank=2"));
  const std::string key = key_in(jobs.output).substr(0, 6);
  const Finished explained = sandbox.prefgrid("explain " + key + " --store runs/grid");
  INFO(explained.output);
  CHECK(explained.status == 0);
  CHECK(contains(explained.output, "state: failed\n"));
  CHECK(contains(explained.output, "what_to_do: `prefgrid retry grid --store runs/grid`"));
  CHECK(contains(explained.output, "history (UTC):\n  20"));
  CHECK(contains(explained.output, "  leased, attempt 1 on local\n"));
  const Finished log = sandbox.prefgrid("logs " + key + " --store runs/grid");
  CHECK(log.status == 0);
  CHECK(contains(log.output, "words of the job\n"));
}

TEST_CASE("a job that a failed one blocks is explained with the same way on") {
  const FailedSandbox sandbox;
  const std::string key =
      key_in(sandbox.shell("$P jobs grid --state blocked --stage adapt | sed -n 2p").output);
  const Finished explained = sandbox.prefgrid("explain " + key + " --store runs/grid");
  CHECK(contains(explained.output, "state: blocked\n"));
  CHECK(contains(explained.output, "`prefgrid retry grid --store runs/grid` lets the failed ones"));
}

TEST_CASE("a method whose users all failed stays in the tables, without figures") {
  const FailedSandbox sandbox;
  const std::string csv = sandbox.file("runs/grid/results.csv");
  INFO(csv);
  CHECK(
      contains(csv, "pairs,lore,\"features_from=bow,rank=2\",bow,,,,0,seen,rm_accuracy,,,,0,0,2"));
  CHECK(contains(sandbox.prefgrid("results grid").output, "- (0 of 2)"));
}

TEST_CASE("cancel stops an experiment, keeps its results, and a new run takes it up") {
  const FailedSandbox sandbox;
  REQUIRE(sandbox.prefgrid("retry grid").status == 0);  // 15 jobs are to run
  const Finished cancel = sandbox.prefgrid("cancel grid");
  INFO(cancel.output);
  CHECK(cancel.status == 0);
  CHECK(cancel.output.starts_with("grid: cancelled; 32 results stay, 15 jobs will not run."));
  CHECK(contains(sandbox.prefgrid("status grid").output, "cancelled)"));
  const Finished retry = sandbox.prefgrid("retry grid");
  CHECK(retry.status == 2);
  CHECK(lines_of(retry.output) == 1);
  CHECK(sandbox.prefgrid("plan grid.yaml").output.ends_with("\n15 jobs to run\n"));
  const Finished run = sandbox.prefgrid("run grid.yaml");
  CHECK(run.status == 0);
  CHECK(run.output.starts_with("15 jobs to run\n"));
}

}  // namespace prefgrid
