// Progress as plain lines: what `run` and `submit --wait` print while they watch.
#pragma once

#include <chrono>
#include <string>

#include "common/value.h"
#include "coordinator/cli/output.h"
#include "coordinator/plan_diff.h"

namespace prefgrid {

// What is left of an experiment, from a progress answer.
JobTotals job_totals(const Value& experiment_progress);

class ProgressPrinter {
 public:
  ProgressPrinter(Output& out, bool json) : out_(out), json_(json) {}
  // An answer of the verb "watch". Prints when a stage ends or a job fails, else every 2 s.
  void show(const Value& answer);

 private:
  void show_disk(bool full);
  void show_failures(const Value& experiment);

  Output& out_;
  bool json_;
  bool disk_was_full_ = false;
  std::string finished_stages_;
  std::string last_line_;
  std::int64_t failed_ = 0;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point printed_ = started_ - std::chrono::hours(1);
};

}  // namespace prefgrid
