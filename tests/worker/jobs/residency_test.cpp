// Results must not depend on what was resident.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/worker/jobs/pipeline.h"
#include "worker/executor/jobs/resident.h"

namespace prefgrid {
namespace {

TEST_CASE("jobs give the same bytes in one process, in another order, and each in a fresh runner") {
  Pipeline pipeline;
  JobRunner one;
  std::map<std::string, std::string> first;
  std::vector<PipelineJob> jobs = tiny_jobs();
  for (const PipelineJob& job : jobs) {
    CAPTURE(job.name);
    const auto result = pipeline.run(one, job.name, job.spec, job.inputs);
    REQUIRE_MESSAGE(result.ok(), result.error().message);
    first[job.name] = result_bytes(*result, pipeline.folder_of(job.name));
  }
  const auto is_leaf = [](const PipelineJob& job) {
    return job.spec.kind == "policy_accuracy" || job.spec.kind == "rm_accuracy" ||
           job.spec.kind.starts_with("generate.");
  };
  std::erase_if(jobs, [&](const PipelineJob& job) { return !is_leaf(job); });
  JobRunner other;
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
    CAPTURE(job->name);
    const auto backwards = pipeline.run(other, "again", job->spec, job->inputs);
    REQUIRE(backwards.ok());
    CHECK(result_bytes(*backwards, pipeline.folder_of("again")) == first[job->name]);
    const auto warm = pipeline.run(other, "again", job->spec, job->inputs);
    REQUIRE(warm.ok());
    CHECK(result_bytes(*warm, pipeline.folder_of("again")) == first[job->name]);
    JobRunner fresh;
    const auto cold = pipeline.run(fresh, "again", job->spec, job->inputs);
    REQUIRE(cold.ok());
    CHECK(result_bytes(*cold, pipeline.folder_of("again")) == first[job->name]);
  }
}

TEST_CASE("the least recently used entries go when the budget is spent") {
  ResidentModels resident(100);
  int made = 0;
  const auto get = [&](const std::string& key) {
    return resident.get<int>(
        key, [&]() -> Result<int> { return ++made; }, [](int) { return std::uint64_t{40}; });
  };
  CHECK(**get("a") == 1);
  CHECK(**get("b") == 2);
  CHECK(**get("a") == 1);
  CHECK(**get("c") == 3);  // "b" goes
  CHECK(**get("a") == 1);
  CHECK(**get("b") == 4);
  CHECK(resident.bytes() <= 100);
}

TEST_CASE("an entry over the budget is still handed out, and a failure is not kept") {
  ResidentModels resident(10);
  const auto big = resident.get<int>(
      "big", []() -> Result<int> { return 7; }, [](int) { return std::uint64_t{1000}; });
  REQUIRE(big.ok());
  CHECK(**big == 7);
  const auto fails = [] { return Result<int>(invalid_input("no")); };
  CHECK_FALSE(resident.get<int>("bad", fails, [](int) { return std::uint64_t{1}; }).ok());
  const auto now = resident.get<int>(
      "bad", []() -> Result<int> { return 1; }, [](int) { return std::uint64_t{1}; });
  CHECK(now.ok());
}

}  // namespace
}  // namespace prefgrid
