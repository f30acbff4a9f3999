// The tables of an experiment as plain data: a view over committed results, never stored itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/job.h"
#include "common/result.h"
#include "common/value.h"

namespace prefgrid {

// One figure: a metric's mean over the users of one group, in one cell of the grid.
struct ResultRow {
  std::string dataset;
  std::string method;
  std::string config;
  std::string backbone;
  std::string policy;
  std::string decoding;
  std::optional<double> weight;       // guidance weight w, where the figure depends on one
  std::optional<std::uint64_t> seed;  // as listed in the spec, where the cell reads one
  std::string user_group;             // "seen", "unseen", "" for figures that are not per user
  std::string metric;
  std::optional<double> value;   // in the metric's table unit (metrics.h); absent: no result
  std::optional<double> ci_low;  // 95 % bootstrap over users; absent for one user, or none
  std::optional<double> ci_high;
  std::uint64_t n_users = 0;    // behind the figure
  std::uint64_t n_valid = 0;    // items behind the figure
  std::uint64_t n_missing = 0;  // items without a finite value; a user without a result counts once
  std::uint64_t users_missing = 0;  // of the group, with no result or no finite value
};

// A job of the plan that has no result, and why.
struct MissingCell {
  std::string stage;
  std::string job;  // the JobKey's first digits, for `prefgrid explain`
  std::string method;
  std::string config;
  std::string backbone;
  std::string policy;
  std::string user;
  std::string reason;
};

struct ResultTable {
  std::string experiment;
  std::vector<ResultRow> rows;  // sorted by all their columns
  std::vector<MissingCell> missing;
  std::vector<NumericsProfile> profiles;  // more than one: the figures mix profiles
};

Value to_value(const ResultTable& table);
Result<ResultTable> result_table_from_value(const Value& value);

}  // namespace prefgrid
