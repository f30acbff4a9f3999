// Progress as plain lines: what `run` and `submit --wait` print while they watch.
#pragma once

#include <chrono>
#include <string>

#include "common/value.h"

namespace prefgrid {

// Jobs of a progress answer that have still to run.
std::int64_t jobs_to_run(const Value& experiment_progress);

class ProgressPrinter {
 public:
  explicit ProgressPrinter(bool json) : json_(json) {}
  // An answer of the verb "watch". Prints when a stage ends or a job fails, else every 2 s.
  void show(const Value& answer);

 private:
  std::string line(const Value& experiment) const;
  bool json_;
  bool disk_was_full_ = false;
  std::string finished_stages_;
  std::string last_line_;
  std::int64_t failed_ = 0;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point printed_ = started_ - std::chrono::hours(1);
};

}  // namespace prefgrid
