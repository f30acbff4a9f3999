#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "common/limits.h"
#include "common/sha256.h"
#include "tests/end_to_end/workspace.h"

namespace prefgrid {

TEST_CASE("a spec that means the same computes nothing, quickly, and writes the same bytes") {
  // Run, run again, then with keys re-ordered, comments added and a float spelt otherwise.
  if (xorg_missing()) return;
  const Workspace workspace;
  workspace.write("smoke.yaml", smoke_spec());
  const Finished first = workspace.prefgrid({"run", "smoke.yaml"});
  INFO(first.output);
  REQUIRE(first.status == 0);
  CHECK(first.output.find(" jobs to run\n") != std::string::npos);
  const std::string csv = workspace.file("runs/smoke/results.csv");
  const std::string html = workspace.file("runs/smoke/report.html");
  REQUIRE(!csv.empty());
  CHECK(csv == undisturbed_smoke().csv);
  CHECK(html == undisturbed_smoke().html);

  const Finished second = workspace.prefgrid({"run", "smoke.yaml"});
  CHECK(second.status == 0);
  CHECK(second.output.starts_with("0 jobs to run\n"));
  CHECK(workspace.file("runs/smoke/results.csv") == csv);
  CHECK(workspace.file("runs/smoke/report.html") == html);

  std::string respelt = replaced(smoke_spec(), "experiment: smoke", "# the same, spelt otherwise");
  respelt = replaced(respelt, "weights: [0, 1]", "weights: [0.0, 1e0]");
  workspace.write("respelt.yaml", respelt + "\nexperiment: smoke\n");
  const Finished third = workspace.prefgrid({"run", "respelt.yaml"});
  INFO(third.output);
  CHECK(third.status == 0);
  CHECK(third.output.starts_with("0 jobs to run\n"));
  CHECK(workspace.file("runs/smoke/results.csv") == csv);
}

TEST_CASE("on real data, hashed words tell what a user-blind and a user-aware reward can reach") {
  // experiments/specs/headroom.yaml; the bands are those known for this dataset.
  if (xorg_missing()) return;
  const Workspace workspace;
  workspace.write("headroom.yaml", shipped_spec("headroom.yaml"));
  const Finished run = workspace.prefgrid({"run", "headroom.yaml"});
  INFO(run.output);
  REQUIRE(run.status == 0);
  const Finished tables = workspace.prefgrid({"results", "headroom", "--json"});
  REQUIRE(tables.status == 0);
  const auto answer = nlohmann::json::parse(tables.output);
  std::map<std::string, std::vector<double>> accuracy;  // by config, over seeds
  for (const auto& row : answer["rows"]) {
    if (row["metric"] == "rm_accuracy" && row["user_group"] == "seen") {
      accuracy[row["config"]].push_back(row["value"]);
    }
  }
  for (const double blind : accuracy["features_from=bow,rank=1"]) {
    CHECK(blind == doctest::Approx(75).epsilon(3.0 / 75));
  }
  for (const double aware : accuracy["features_from=bow,rank=5"]) {
    CHECK(aware == doctest::Approx(87).epsilon(3.0 / 87));
  }
  CHECK(accuracy["features_from=bow,rank=1"].size() == 3);
  CHECK(accuracy["features_from=bow,rank=5"].size() == 3);
}

TEST_CASE("the store has no artefact: every file that a job made can be printed, small or large") {
  if (xorg_missing()) return;
  const Workspace workspace;
  workspace.write("smoke.yaml", smoke_spec());
  REQUIRE(workspace.prefgrid({"run", "smoke.yaml"}).status == 0);
  const Finished listed = workspace.prefgrid({"jobs", "smoke", "--json"});
  REQUIRE(listed.status == 0);
  std::map<std::string, std::string> key_of;  // one job a stage
  const auto answer = nlohmann::json::parse(listed.output);
  for (const auto& job : answer) {
    key_of[job["stage"]] = job["job"];
  }
  std::size_t small = 0;
  std::size_t large = 0;
  for (const auto& [stage, key] : key_of) {
    const Finished told = workspace.prefgrid({"explain", key, "--store", "runs/smoke", "--json"});
    REQUIRE(told.status == 0);
    const auto job = nlohmann::json::parse(told.output);
    for (const auto& file : job["result"]["artifacts"]) {
      const Finished printed =
          workspace.prefgrid({"explain", key, "--store", "runs/smoke", "--artifact", file["name"]});
      INFO(stage << " " << file["name"] << " " << printed.output.substr(0, 200));
      CHECK(printed.status == 0);
      CHECK(digest_of(printed.output).hex() == file["digest"].get<std::string>());
      ++(file["size"].get<std::uint64_t>() <= limits::inline_artifact_bytes ? small : large);
    }
  }
  CHECK(small > 2);
  CHECK(large >= 2);
}

TEST_CASE("one more method runs its own cells alone, and plan says so beforehand") {
  if (xorg_missing()) return;
  const Workspace workspace;
  workspace.write("smoke.yaml", smoke_spec());
  REQUIRE(workspace.prefgrid({"run", "smoke.yaml"}).status == 0);
  workspace.write(
      "more.yaml",
      replaced(smoke_spec(), "  - global_bt\n",
               "  - global_bt\n"
               "  - lore: {features_from: bow, rank: 1, steps: 50, adapt_steps: 50}\n"));
  const Finished plan = workspace.prefgrid({"plan", "more.yaml", "--json"});
  INFO(plan.output);
  REQUIRE(plan.status == 0);
  const auto planned = nlohmann::json::parse(plan.output);
  for (const auto& stage : planned["stages"]) {
    const std::string name = stage["stage"];
    CHECK(stage["reuse"].get<int>() + stage["run"].get<int>() == stage["total"].get<int>());
    if (name == "pretrain" || name == "embed") CHECK(stage["run"] == 0);
    if (name == "train") CHECK(stage["run"] == 1);
  }
  const int jobs = planned["run"];
  CHECK(jobs > 0);
  const Finished run = workspace.prefgrid({"run", "more.yaml"});
  INFO(run.output);
  CHECK(run.status == 0);
  CHECK(run.output.starts_with(std::to_string(jobs) + " jobs to run\n"));
  CHECK(jobs_run_again(workspace.path() / "runs/smoke").empty());
}

}  // namespace prefgrid
