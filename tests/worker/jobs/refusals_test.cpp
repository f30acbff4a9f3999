// Jobs that must fail with words.
#include <algorithm>
#include <cmath>

// torch before doctest: glog's CHECK would replace doctest's.
#include "worker/executor/jobs/job_table.h"
#include "worker/nn/safetensors.h"
//
#include <doctest/doctest.h>

#include "tests/worker/jobs/pipeline.h"

namespace prefgrid {
namespace {

std::string message_of(JobSpec spec, const std::map<std::string, std::string>& inputs = {}) {
  Pipeline pipeline;
  JobRunner runner;
  const auto result = pipeline.run(runner, "out", std::move(spec), inputs);
  REQUIRE_FALSE(result.ok());
  return result.error().message;
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the table has every kind of the catalogue and no other") {
  std::vector<std::string> table;
  for (const JobKind& kind : job_kinds()) table.emplace_back(kind.kind);
  std::vector<std::string> rows;
  for (const KindVersion& kind : catalog().kind_versions()) rows.push_back(kind.kind);
  std::sort(table.begin(), table.end());
  CHECK(table == rows);
}

TEST_CASE("an unknown kind, another version, an unknown or ill-typed parameter are refused") {
  JobSpec unknown = job_spec("train.nothing", {});
  unknown.kind_version = 1;
  CHECK(holds(message_of(unknown), "train.nothing"));
  JobSpec newer = job_spec("embed.bow", {});
  newer.kind_version = 99;
  CHECK(holds(message_of(newer), "version 99"));
  CHECK(holds(message_of(job_spec("embed.bow", {{"dimension", 8}})), "dimension"));
  CHECK(holds(message_of(job_spec("embed.bow", {{"dimensions", "8"}})), "wrong type"));
  CHECK(holds(message_of(job_spec("embed.bow", {{"dimensions", 0}})), "range"));
}

TEST_CASE("a missing input, user or method is named") {
  CHECK(holds(message_of(job_spec("embed.lm", {})), "backbone"));
  CHECK(holds(message_of(job_spec("rm_accuracy", of_user("global_bt", "nobody"))), "nobody"));
  CHECK(holds(message_of(job_spec("rm_accuracy", {{"user", "ada"}})), "method"));
  CHECK(holds(message_of(job_spec("rm_accuracy", of_user("zero_shot", "ada")), {}), "features"));
}

TEST_CASE("a reward that is NaN fails the job and says that its training diverged") {
  Pipeline pipeline;
  JobRunner runner;
  const PipelineJob bow = tiny_jobs()[3];
  REQUIRE(pipeline.run(runner, "bow", bow.spec, bow.inputs).ok());
  const JobSpec train = job_spec("train.lore", {{"features_from", "bow"}, {"steps", 2}}, 1);
  REQUIRE(pipeline.run(runner, "lore", train, {{"features", "bow"}}).ok());
  const auto file = pipeline.folder_of("lore") / "lore.safetensors";
  auto tensors = load_safetensors(file);
  REQUIRE(tensors.ok());
  (*tensors)["V"][0][0] = std::nanf("");
  REQUIRE(save_safetensors(*tensors, file).ok());
  const auto result = pipeline.run(runner, "rm", job_spec("rm_accuracy", of_user("lore", "ada")),
                                   {{"features", "bow"}, {"train", "lore"}});
  REQUIRE_FALSE(result.ok());
  CHECK(holds(result.error().message, "diverged"));
}

TEST_CASE("weights that are no list of reals are refused") {
  Pipeline pipeline;
  JobRunner runner;
  const auto jobs = tiny_jobs();
  REQUIRE(pipeline.run(runner, "model", jobs[0].spec, {}).ok());
  REQUIRE(pipeline.run(runner, "bow", jobs[3].spec, {}).ok());
  REQUIRE(pipeline.run(runner, "lore_bow", jobs[4].spec, jobs[4].inputs).ok());
  const auto with = [&](Value weights) {
    ValueMap parameters = of_user("lore", "ada", {{"items", 1}, {"k", 2}});
    parameters["weights"] = std::move(weights);
    return pipeline.run(runner, "policy", job_spec("policy_accuracy", parameters),
                        {{"policy", "model"}, {"features", "bow"}, {"train", "lore_bow"}});
  };
  CHECK_FALSE(with(Value(ValueList{})).ok());
  CHECK_FALSE(with(Value("1")).ok());
  CHECK_FALSE(with(Value(ValueList{Value(1)})).ok());
  CHECK_FALSE(with(Value(ValueList{Value(-1.0)})).ok());
  const auto good = with(Value(ValueList{Value(0.0), Value(3.0)}));
  REQUIRE_MESSAGE(good.ok(), good.error().message);
  CHECK(std::count_if(good->metrics.begin(), good->metrics.end(),
                      [](const Metric& metric) { return metric.name == "flip_rate"; }) == 2);
}

TEST_CASE("the profile says what computed the numbers") {
  const NumericsProfile profile = numerics_profile();
  CHECK(profile.device == "cpu");
  CHECK(profile.dtype == "fp32");
  CHECK(profile.threads >= 1);
  CHECK_FALSE(profile.blas_kernel.empty());
}

}  // namespace
}  // namespace prefgrid
