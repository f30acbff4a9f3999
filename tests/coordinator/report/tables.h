// Builders for small plans, results and tables.
#pragma once

#include <map>
#include <string>

#include "common/sha256.h"
#include "coordinator/report/aggregate.h"

namespace prefgrid {

inline JobKey key_named(const std::string& name) {
  return JobKey{sha256(name)};
}

// One planned job that fills one cell, with its result.
struct TinyGrid {
  Plan plan;
  std::map<JobKey, JobResult> results;

  TinyGrid() { plan.experiment = "tiny"; }
  void add(const std::string& name, CellLabel cell, std::vector<Metric> metrics,
           const std::string& stage = "rm_accuracy") {
    add_missing(name, std::move(cell), stage);
    JobResult result;
    result.metrics = std::move(metrics);
    result.profile.device = "cpu";
    results.emplace(key_named(name), std::move(result));
  }
  void add_missing(const std::string& name, CellLabel cell,
                   const std::string& stage = "rm_accuracy") {
    PlannedJob job;
    job.key = key_named(name);
    job.stage = stage;
    job.cells = {std::move(cell)};
    plan.jobs.push_back(std::move(job));
  }
  ResultTable table() const {
    return aggregate(plan, "tiny-data",
                     {[this](const JobKey& key) -> std::optional<JobResult> {
                        const auto found = results.find(key);
                        return found == results.end() ? std::nullopt : std::optional(found->second);
                      },
                      [](const JobKey&) { return std::string("not run yet"); }});
  }
};

inline CellLabel cell_of(const std::string& method, const std::string& user,
                         const std::string& group = "seen") {
  CellLabel cell;
  cell.method = method;
  cell.backbone = "tiny";
  cell.user = user;
  cell.user_group = group;
  return cell;
}

inline Metric metric(const std::string& name, double sum, std::uint64_t count,
                     std::optional<double> weight = {}, std::uint64_t missing = 0) {
  return {name, weight, sum, count, missing};
}

inline const ResultRow* find_row(const ResultTable& table, const std::string& metric_name,
                                 const std::string& method, const std::string& group = "seen") {
  for (const ResultRow& row : table.rows) {
    if (row.metric == metric_name && row.method == method && row.user_group == group) return &row;
  }
  return nullptr;
}

inline const ResultRow* find_weight(const ResultTable& table, const std::string& metric_name,
                                    double weight) {
  for (const ResultRow& row : table.rows) {
    if (row.metric == metric_name && row.weight == weight) return &row;
  }
  return nullptr;
}

}  // namespace prefgrid
