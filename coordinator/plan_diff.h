// What a plan would reuse and what it would run, and why a cell runs that looks like a finished
// one: which field of which job changed. Pure; the store is asked through a function.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "coordinator/plan.h"

namespace prefgrid {

// How a store knows a job.
enum class Standing : std::uint8_t {
  to_run,  // not known, on its way, or cancelled: it will run
  done,
  failed  // for good: only a retry runs it again
};

// What is left of an experiment.
struct JobTotals {
  std::uint64_t run = 0;
  std::uint64_t failed = 0;
  std::uint64_t blocked = 0;  // they need a failed one
};

struct StageCounts {
  std::string stage;
  std::uint64_t total = 0;
  std::uint64_t reuse = 0;
  JobTotals left;
};

// Jobs of a stage that run again although an earlier experiment has the same cell's result.
struct RerunReason {
  std::string stage;
  std::string reason;  // "lore: rank changed 5 -> 6", "kind version 1 -> 2", "dataset changed"
  std::uint64_t jobs = 0;
};

struct PlanDiff {
  std::vector<StageCounts> stages;  // in order of execution
  std::vector<RerunReason> reruns;  // by stage, then by number of jobs, then by text
  JobTotals left;
};

// `earlier`: plans of the experiments that the store knows. `standing`: of a job there.
// A job that runs is explained by the finished job of the same place in the tables (kind, method,
// models, seed, user) that no longer stands in this plan and differs in the fewest fields.
// Where only its inputs differ, the reason is that of the input's own job. What an earlier plan
// holds already and has not finished is just run.
PlanDiff diff_plan(const Plan& plan, std::span<const Plan> earlier,
                   const std::function<Standing(const JobKey&)>& standing, const Catalog& catalog);

// "12 jobs to run", and what failed with the command that runs it again. `plan` and `run` say the
// same of the same store.
std::string totals_text(const JobTotals& left, const std::string& spec_file);

// For a terminal; ends with a newline.
std::string plan_diff_text(const PlanDiff& diff, const std::string& spec_file,
                           std::span<const std::string> notes = {});
// {"stages":[{"stage","total","reuse","run","failed","blocked"}],"run":N,"failed":N,"blocked":N,
//  "reruns":[{"stage","reason","jobs"}],"notes":[...]}
std::string plan_diff_json(const PlanDiff& diff, std::span<const std::string> notes = {});

}  // namespace prefgrid
