// Committed results -> tables. Pure: reads results through a function, touches nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "coordinator/plan.h"
#include "coordinator/report/result_table.h"

namespace prefgrid {

struct ResultSource {
  std::function<std::optional<JobResult>(const JobKey&)> result;
  // Why a job has no result: "not run yet", or its failure's message.
  std::function<std::string(const JobKey&)> why_missing;
};

// Per user first (sum / count), then the mean over users; every mean with its n and, of two users
// or more, a seeded 95 % bootstrap interval over users (arXiv 2512.23067 and methods: macro
// averages). rm_accuracy also pooled over items. Shares become percent. A cell without any result
// keeps its rows, without a value. The same results give the same bytes.
ResultTable aggregate(const Plan& plan, const std::string& dataset, const ResultSource& source);

}  // namespace prefgrid
