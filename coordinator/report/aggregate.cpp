#include "coordinator/report/aggregate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "common/random.h"
#include "common/statistics.h"
#include "coordinator/report/metrics.h"

namespace prefgrid {
namespace {

struct UserStatistic {
  double sum = 0;
  std::uint64_t count = 0;
  std::uint64_t missing = 0;
};

// Users by name, so that the order in which results arrived leaves no trace.
using Users = std::map<std::string, UserStatistic>;
using FigureKey = std::pair<std::string, std::optional<double>>;  // metric, weight

// All figures of one place in the grid, from the jobs of one stage.
struct Cell {
  std::map<FigureKey, Users> figures;
  std::uint64_t absent_users = 0;  // whose job has no result
};
// Stage, method, config, backbone, policy, decoding, weight, seed, user group.
using CellKey =
    std::tuple<std::string, std::string, std::string, std::string, std::string, std::string,
               std::optional<double>, std::optional<std::uint64_t>, std::string>;
using Cells = std::map<CellKey, Cell>;

CellKey cell_key(const PlannedJob& job, const CellLabel& label) {
  return {job.stage,      label.method, label.config, label.backbone,  label.policy,
          label.decoding, label.weight, label.seed,   label.user_group};
}

void add_result(Cell& cell, const PlannedJob& job, const CellLabel& label,
                const JobResult& result) {
  for (const Metric& metric : result.metrics) {
    const auto weight = metric.weight ? metric.weight : label.weight;
    UserStatistic& user = cell.figures[{table_name(job.stage, metric.name), weight}][label.user];
    user.sum += metric.sum;
    user.count += metric.count;
    user.missing += metric.missing;
  }
}

// The rows are there even if no user of the cell has a result.
void add_absent_user(Cell& cell, const PlannedJob& job, const CellLabel& label) {
  ++cell.absent_users;
  for (const ExpectedFigure& figure : expected_figures(job)) {
    cell.figures[{figure.metric, figure.weight ? figure.weight : label.weight}];
  }
}

std::uint64_t row_seed(const ResultRow& row) {
  // The joint seed of a comparison: every row of one group draws the same resamples of users.
  return stable_hash("bootstrap/" + row.dataset + "/" + row.user_group);
}

ResultRow make_row(const std::string& dataset, const CellKey& key, const FigureKey& figure) {
  ResultRow row;
  std::string stage;
  row.dataset = dataset;
  std::tie(stage, row.method, row.config, row.backbone, row.policy, row.decoding, row.weight,
           row.seed, row.user_group) = key;
  std::tie(row.metric, row.weight) = figure;
  return row;
}

// One user has no spread over users to show: no interval.
void set_interval(ResultRow& row, double scale, const std::function<Interval()>& interval) {
  if (row.user_group.empty() || row.n_users < 2) return;
  const Interval drawn = interval();
  row.ci_low = drawn.low * scale;
  row.ci_high = drawn.high * scale;
}

ResultRow macro_row(ResultRow row, const Users& users, std::uint64_t absent) {
  std::vector<double> means;
  for (const auto& [name, user] : users) {
    row.n_valid += user.count;
    row.n_missing += user.missing;
    if (user.count > 0) means.push_back(user.sum / static_cast<double>(user.count));
  }
  row.n_users = means.size();
  row.n_missing += absent;
  row.users_missing = users.size() - means.size() + absent;
  if (means.empty()) return row;
  const double scale = table_scale(unit_of(row.metric));
  row.value = mean(means) * scale;
  set_interval(row, scale, [&] { return bootstrap_mean(means, row_seed(row)); });
  return row;
}

ResultRow pooled_row(ResultRow row, const Users& users, std::uint64_t absent) {
  std::vector<double> sums, counts;
  double sum = 0, count = 0;
  for (const auto& [name, user] : users) {
    row.n_missing += user.missing;
    if (user.count == 0) continue;
    sums.push_back(user.sum);
    counts.push_back(static_cast<double>(user.count));
    sum += sums.back();
    count += counts.back();
    row.n_valid += user.count;
  }
  row.metric += "_pooled";
  row.n_users = counts.size();
  row.n_missing += absent;
  row.users_missing = users.size() - counts.size() + absent;
  if (counts.empty()) return row;
  const double scale = table_scale(unit_of(row.metric));
  row.value = sum / count * scale;
  set_interval(row, scale, [&] { return bootstrap_ratio(sums, counts, row_seed(row)); });
  return row;
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

std::vector<ResultRow> rows_of(const Cells& cells, const std::string& dataset) {
  std::vector<ResultRow> rows;
  for (const auto& [key, cell] : cells) {
    for (const auto& [figure, users] : cell.figures) {
      const ResultRow row = make_row(dataset, key, figure);
      if (row.metric == "rm_accuracy") rows.push_back(pooled_row(row, users, cell.absent_users));
      rows.push_back(macro_row(row, users, cell.absent_users));
    }
  }
  sort_rows(rows);
  return rows;
}

}  // namespace

ResultTable aggregate(const Plan& plan, const std::string& dataset, const ResultSource& source) {
  ResultTable table;
  table.experiment = plan.experiment;
  Cells cells;
  std::set<NumericsProfile> profiles;
  for (const PlannedJob& job : plan.jobs) {
    if (job.cells.empty()) continue;
    const std::optional<JobResult> result = source.result(job.key);
    if (result) profiles.insert(result->profile);
    for (const CellLabel& label : job.cells) {
      Cell& cell = cells[cell_key(job, label)];
      if (result) {
        add_result(cell, job, label, *result);
      } else {
        add_absent_user(cell, job, label);
        table.missing.push_back(missing_cell(job, label, source.why_missing(job.key)));
      }
    }
  }
  table.rows = rows_of(cells, dataset);
  table.profiles.assign(profiles.begin(), profiles.end());
  return table;
}

}  // namespace prefgrid
