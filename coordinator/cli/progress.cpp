#include "coordinator/cli/progress.h"

#include <fmt/format.h>

#include <cstdio>

#include "coordinator/cli/value_json.h"

namespace prefgrid {
namespace {

Value counts_of(const Value& progress) {
  return field_or<ValueMap>(progress, "counts", {});
}

// The names of the stages that are through: a change is worth a line at once.
std::string finished_stages(const Value& experiment) {
  std::string names;
  for (const Value& stage : field_or<ValueList>(experiment, "stages", {})) {
    const Value counts = counts_of(stage);
    if (integer_field(counts, "done") == integer_field(counts, "total")) {
      names += text_field(stage, "stage") + " ";
    }
  }
  return names;
}

}  // namespace

std::int64_t jobs_to_run(const Value& experiment_progress) {
  const Value counts = counts_of(experiment_progress);
  std::int64_t jobs = 0;
  for (const char* state : {"waiting", "ready", "running", "retrying"}) {
    jobs += integer_field(counts, state);
  }
  return jobs;
}

std::string ProgressPrinter::line(const Value& experiment) const {
  std::string out;
  for (const Value& stage : field_or<ValueList>(experiment, "stages", {})) {
    const Value counts = counts_of(stage);
    const std::int64_t running = integer_field(counts, "running");
    out += fmt::format("  {} {}/{}", text_field(stage, "stage"), integer_field(counts, "done"),
                       integer_field(counts, "total"));
    if (running > 0) out += fmt::format("+{}", running);
    for (const char* state : {"failed", "blocked"}) {
      const std::int64_t count = integer_field(counts, state);
      if (count > 0) out += fmt::format(" ({} {})", count, state);
    }
  }
  return out;
}

void ProgressPrinter::show(const Value& answer) {
  const Value experiment = field_or<ValueMap>(answer, "experiment", {});
  const auto now = std::chrono::steady_clock::now();
  const bool disk_full = field_or<bool>(answer, "disk_full", false);
  if (disk_full != disk_was_full_) {
    std::fprintf(stderr, "%s\n",
                 disk_full ? "the disk is full: waiting for room; nothing is lost"
                           : "the disk has room again: going on");
    disk_was_full_ = disk_full;
  }
  const std::string finished = finished_stages(experiment);
  const std::int64_t failed = integer_field(counts_of(experiment), "failed");
  const std::string text = json_ ? value_to_json(experiment).dump() : line(experiment);
  const bool ended = field_or<bool>(experiment, "finished", false);
  const bool urgent = ended || finished != finished_stages_ || failed != failed_;
  if (text == last_line_ || (!urgent && now - printed_ < std::chrono::seconds(2))) return;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  if (json_) {
    std::printf("%s\n", text.c_str());
  } else {
    std::printf("%6.1f s%s\n", seconds, text.c_str());
  }
  std::fflush(stdout);
  if (failed > failed_) {
    for (const Value& job : field_or<ValueList>(experiment, "failed_jobs", {})) {
      std::fprintf(stderr, "failed %s: %s\n", text_field(job, "job").substr(0, 12).c_str(),
                   text_field(job, "message").c_str());
    }
  }
  finished_stages_ = finished;
  failed_ = failed;
  last_line_ = text;
  printed_ = now;
}

}  // namespace prefgrid
