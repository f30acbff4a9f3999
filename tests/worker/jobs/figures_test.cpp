// What the jobs' figures mean, and that they do not move unnoticed.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/worker/jobs/pipeline.h"

namespace prefgrid {
namespace {

using nlohmann::json;

const Metric* find_metric(const JobResult& result, const std::string& name,
                          std::optional<double> weight = std::nullopt) {
  for (const Metric& metric : result.metrics) {
    if (metric.name == name && metric.weight == weight) return &metric;
  }
  return nullptr;
}

double mean_of(const JobResult& result, const std::string& name,
               std::optional<double> weight = std::nullopt) {
  const Metric* metric = find_metric(result, name, weight);
  REQUIRE_MESSAGE(metric != nullptr, name);
  return metric->sum / static_cast<double>(metric->count);
}

std::map<std::string, JobResult> run_all() {
  Pipeline pipeline;
  JobRunner runner;
  std::map<std::string, JobResult> results;
  for (const PipelineJob& job : tiny_jobs()) {
    auto result = pipeline.run(runner, job.name, job.spec, job.inputs);
    REQUIRE_MESSAGE(result.ok(), job.name << ": " << result.error().message);
    results[job.name] = *std::move(result);
  }
  return results;
}

const std::map<std::string, JobResult>& all_results() {
  static const std::map<std::string, JobResult> results = run_all();
  return results;
}

TEST_CASE("policy accuracy at w = 0 is the base policy's, and nothing flips there") {
  for (const char* name : {"policy_bt", "policy_lore", "policy_bow"}) {
    const JobResult& result = all_results().at(name);
    CHECK(mean_of(result, "flip_rate", 0.0) == 0);
    CHECK(mean_of(result, "policy_accuracy", 0.0) == mean_of(result, "policy_accuracy_base"));
    CHECK(find_metric(result, "policy_accuracy", 16.0) != nullptr);
    CHECK(mean_of(result, "reward_scale") > 0);
  }
}

TEST_CASE("zero_shot is the base policy: no weight, no flip") {
  const JobResult& result = all_results().at("policy_zero");
  CHECK(mean_of(result, "policy_accuracy") == mean_of(result, "policy_accuracy_base"));
  CHECK(mean_of(result, "flip_rate") == 0);
  CHECK(mean_of(result, "policy_accuracy_base") ==
        mean_of(all_results().at("policy_bt"), "policy_accuracy_base"));
}

TEST_CASE("bags of words tell a habit that content does not") {
  CHECK(mean_of(all_results().at("rm_bow"), "rm_accuracy") > 0.9);
  CHECK(mean_of(all_results().at("policy_bow"), "policy_accuracy", 1.0) > 0.9);
}

TEST_CASE("generations are scored against the user's own text, all items") {
  for (const char* name : {"greedy_zero", "greedy_icl", "args_bt", "args_bow"}) {
    const Metric* metric = find_metric(all_results().at(name), "rouge1");
    REQUIRE(metric != nullptr);
    CHECK(metric->count == 3);
  }
}

json as_json(const JobResult& result, std::uint32_t version) {
  json metrics = json::object();
  for (const Metric& metric : result.metrics) {
    std::string name = metric.name;
    if (metric.weight) name += "@" + std::to_string(*metric.weight);
    metrics[name] = {metric.sum, metric.count};
  }
  return {{"version", version}, {"metrics", metrics}};
}

// Kernels differ in their last bits, and training carries that on.
bool same_figure(double stored, double now) {
  return std::abs(stored - now) <= 1e-4 * std::max({1.0, std::abs(stored), std::abs(now)});
}

TEST_CASE("no kind's figures move without its version: bump it in experiments/catalog") {
  const std::filesystem::path file =
      std::filesystem::path(PREFGRID_SOURCE_DIR) / "tests/vectors/job_results.json";
  json now = json::object();
  for (const PipelineJob& job : tiny_jobs()) {
    now[job.name] = as_json(all_results().at(job.name), *catalog().version_of(job.spec.kind));
    now[job.name]["kind"] = job.spec.kind;
  }
  if (std::getenv("PREFGRID_UPDATE_VECTORS") != nullptr) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << now.dump(1) << "\n";
  }
  std::ifstream in(file);
  REQUIRE_MESSAGE(in.good(), "tests/vectors/job_results.json is missing");
  const json stored = json::parse(in);
  for (const auto& [name, result] : now.items()) {
    CAPTURE(name);
    REQUIRE_MESSAGE(stored.contains(name),
                    "no stored result: run once with PREFGRID_UPDATE_VECTORS=1");
    const json& before = stored[name];
    if (before["version"] != result["version"]) {
      FAIL_CHECK("the version moved: run once with PREFGRID_UPDATE_VECTORS=1 and commit the file");
      continue;
    }
    for (const auto& [metric, value] : result["metrics"].items()) {
      const bool same = before["metrics"].contains(metric) &&
                        before["metrics"][metric][1] == value[1] &&
                        same_figure(before["metrics"][metric][0], value[0]);
      CHECK_MESSAGE(same, std::string(result["kind"])
                              << " computes another " << metric << " but is still version "
                              << result["version"] << ": bump the version of its row");
    }
  }
}

}  // namespace
}  // namespace prefgrid
