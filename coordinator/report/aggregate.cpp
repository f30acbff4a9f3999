#include "coordinator/report/aggregate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "common/random.h"
#include "common/statistics.h"

namespace prefgrid {
namespace {

struct UserStatistic {
  double sum = 0;
  std::uint64_t count = 0;
  std::uint64_t missing = 0;
};

// A figure's place in the table: every column before `value` except the dataset.
using FigureKey =
    std::tuple<std::string, std::string, std::string, std::string, std::string,
               std::optional<double>, std::optional<std::uint64_t>, std::string, std::string>;
// Users by name, so that the order in which results arrived leaves no trace.
using Figures = std::map<FigureKey, std::map<std::string, UserStatistic>>;

FigureKey figure_key(const CellLabel& cell, const Metric& metric) {
  const std::optional<double> weight = metric.weight ? metric.weight : cell.weight;
  return {cell.method, cell.config, cell.backbone,   cell.policy, cell.decoding,
          weight,      cell.seed,   cell.user_group, metric.name};
}

void add_result(Figures& figures, const CellLabel& cell, const JobResult& result) {
  for (const Metric& metric : result.metrics) {
    UserStatistic& user = figures[figure_key(cell, metric)][cell.user];
    user.sum += metric.sum;
    user.count += metric.count;
    user.missing += metric.missing;
  }
}

std::uint64_t row_seed(const ResultRow& row) {
  // The joint seed of a comparison: every row of one group draws the same resamples of users.
  return stable_hash("bootstrap/" + row.dataset + "/" + row.user_group);
}

ResultRow make_row(const std::string& dataset, const FigureKey& key) {
  ResultRow row;
  row.dataset = dataset;
  std::tie(row.method, row.config, row.backbone, row.policy, row.decoding, row.weight, row.seed,
           row.user_group, row.metric) = key;
  return row;
}

void add_macro_row(std::vector<ResultRow>& rows, ResultRow row,
                   const std::map<std::string, UserStatistic>& users) {
  std::vector<double> means;
  for (const auto& [name, user] : users) {
    row.n_valid += user.count;
    row.n_missing += user.missing;
    if (user.count > 0) means.push_back(user.sum / static_cast<double>(user.count));
  }
  row.n_users = means.size();
  row.value = mean(means);
  if (!row.user_group.empty() && !means.empty()) {
    const Interval interval = bootstrap_mean(means, row_seed(row));
    row.ci_low = interval.low;
    row.ci_high = interval.high;
  }
  rows.push_back(std::move(row));
}

void add_pooled_row(std::vector<ResultRow>& rows, ResultRow row,
                    const std::map<std::string, UserStatistic>& users) {
  std::vector<double> sums, counts;
  for (const auto& [name, user] : users) {
    row.n_missing += user.missing;
    if (user.count == 0) continue;
    sums.push_back(user.sum);
    counts.push_back(static_cast<double>(user.count));
    row.n_valid += user.count;
  }
  if (counts.empty()) return;
  row.metric += "_pooled";
  row.n_users = counts.size();
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sum += sums[i];
    count += counts[i];
  }
  row.value = sum / count;
  const Interval interval = bootstrap_ratio(sums, counts, row_seed(row));
  row.ci_low = interval.low;
  row.ci_high = interval.high;
  rows.push_back(std::move(row));
}

void sort_rows(std::vector<ResultRow>& rows) {
  std::sort(rows.begin(), rows.end(), [](const ResultRow& a, const ResultRow& b) {
    const auto columns = [](const ResultRow& r) {
      return std::tie(r.dataset, r.method, r.config, r.backbone, r.policy, r.decoding, r.metric,
                      r.weight, r.seed, r.user_group);
    };
    return columns(a) < columns(b);
  });
}

MissingCell missing_cell(const PlannedJob& job, const CellLabel& cell, std::string reason) {
  return {job.stage,     job.key.short_hex(), cell.method, cell.config,
          cell.backbone, cell.policy,         cell.user,   std::move(reason)};
}

// A user whose job has no result counts as one missing item in every figure of its cell.
void count_absent_users(std::vector<ResultRow>& rows, const std::vector<CellLabel>& absent) {
  using Cell = std::tuple<std::string, std::string, std::string, std::string, std::string,
                          std::optional<double>, std::optional<std::uint64_t>, std::string>;
  std::map<Cell, std::uint64_t> users;
  for (const CellLabel& c : absent) {
    ++users[Cell{c.method, c.config, c.backbone, c.policy, c.decoding, c.weight, c.seed,
                 c.user_group}];
  }
  if (users.empty()) return;
  for (ResultRow& r : rows) {
    for (const std::optional<double>& weight : {r.weight, std::optional<double>{}}) {
      const auto found = users.find(
          Cell{r.method, r.config, r.backbone, r.policy, r.decoding, weight, r.seed, r.user_group});
      if (found == users.end()) continue;
      r.n_missing += found->second;
      break;
    }
  }
}

}  // namespace

ResultTable aggregate(const Plan& plan, const std::string& dataset, const ResultSource& source) {
  ResultTable table;
  table.experiment = plan.experiment;
  Figures figures;
  std::vector<CellLabel> absent;
  std::set<NumericsProfile> profiles;
  for (const PlannedJob& job : plan.jobs) {
    if (job.cells.empty()) continue;
    const std::optional<JobResult> result = source.result(job.key);
    if (result) profiles.insert(result->profile);
    for (const CellLabel& cell : job.cells) {
      if (result) {
        add_result(figures, cell, *result);
      } else {
        table.missing.push_back(missing_cell(job, cell, source.why_missing(job.key)));
        absent.push_back(cell);
      }
    }
  }
  for (const auto& [key, users] : figures) {
    ResultRow row = make_row(dataset, key);
    if (row.metric == "rm_accuracy") add_pooled_row(table.rows, row, users);
    add_macro_row(table.rows, std::move(row), users);
  }
  count_absent_users(table.rows, absent);
  sort_rows(table.rows);
  table.profiles.assign(profiles.begin(), profiles.end());
  return table;
}

}  // namespace prefgrid
