// Every job kind and the function that computes it. A new kind is one function and one row.
#pragma once

#include <span>
#include <string_view>

#include "common/job.h"
#include "common/result.h"
#include "worker/executor/jobs/job_environment.h"

namespace prefgrid {

// Metrics, curve, artefacts' names and nothing else: the runner adds profile and duration.
using JobFunction = Result<JobResult> (*)(const JobEnvironment& job);

struct JobKind {
  std::string_view kind;
  JobFunction run;
};
std::span<const JobKind> job_kinds();

Result<JobResult> run_pretrain(const JobEnvironment& job);
Result<JobResult> run_embed_lm(const JobEnvironment& job);
Result<JobResult> run_embed_bow(const JobEnvironment& job);
Result<JobResult> run_train_global_bt(const JobEnvironment& job);
Result<JobResult> run_train_lore(const JobEnvironment& job);
Result<JobResult> run_adapt_lore(const JobEnvironment& job);
Result<JobResult> run_rm_accuracy(const JobEnvironment& job);
Result<JobResult> run_policy_accuracy(const JobEnvironment& job);
Result<JobResult> run_generate_greedy(const JobEnvironment& job);
Result<JobResult> run_generate_args(const JobEnvironment& job);

// Named, digested by the caller.
ArtifactRef artifact(std::string_view name);
// A metric of one value.
Metric single(std::string_view name, double value);

}  // namespace prefgrid
