// The main metrics side by side: what a person reads first, on a terminal and in the report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/report/result_table.h"

namespace prefgrid {

struct SummaryFigure {
  std::optional<double> value;  // absent: no user has a result
  std::optional<double> low;
  std::optional<double> high;
  std::uint64_t users = 0;  // behind the figure
  std::uint64_t users_missing = 0;
};

struct SummaryLine {
  std::string method;
  std::string config;
  std::string backbone;
  std::string policy;
  std::string decoding;
  std::optional<double> weight;
  std::optional<std::uint64_t> seed;
  std::vector<std::optional<SummaryFigure>> figures;  // by SummaryBlock::metrics
};

struct SummaryBlock {
  std::string title;  // "seen users (16)"
  std::vector<std::string> metrics;
  std::vector<SummaryLine> lines;
};

// One block per user group, then one for the models' own losses.
// A configuration's line joins its rm_accuracy, its policy accuracy at the decoder's weight, and
// what it generated.
std::vector<SummaryBlock> summarise(const ResultTable& table);

}  // namespace prefgrid
