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

std::string line(const Value& experiment) {
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

}  // namespace

JobTotals job_totals(const Value& experiment_progress) {
  const Value counts = counts_of(experiment_progress);
  JobTotals totals;
  for (const char* state : {"waiting", "ready", "running", "retrying"}) {
    totals.run += static_cast<std::uint64_t>(integer_field(counts, state));
  }
  totals.failed = static_cast<std::uint64_t>(integer_field(counts, "failed"));
  totals.blocked = static_cast<std::uint64_t>(integer_field(counts, "blocked"));
  return totals;
}

void ProgressPrinter::show(const Value& answer) {
  const Value experiment = field_or<ValueMap>(answer, "experiment", {});
  show_disk(field_or<bool>(answer, "disk_full", false));
  const std::string finished = finished_stages(experiment);
  const std::int64_t failed = integer_field(counts_of(experiment), "failed");
  const std::string text = json_ ? value_to_json(experiment).dump() : line(experiment);
  const bool ended = field_or<bool>(experiment, "finished", false);
  const bool urgent = ended || finished != finished_stages_ || failed != failed_;
  const auto now = std::chrono::steady_clock::now();
  if (text == last_line_ || (!urgent && now - printed_ < std::chrono::seconds(2))) return;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  out_.print(json_ ? text + "\n" : fmt::format("{:6.1f} s{}\n", seconds, text));
  if (failed > failed_) show_failures(experiment);
  finished_stages_ = finished;
  failed_ = failed;
  last_line_ = text;
  printed_ = now;
}

void ProgressPrinter::show_disk(bool full) {
  if (full == disk_was_full_) return;
  std::fprintf(stderr, "%s\n",
               full ? "the disk is full: waiting for room; nothing is lost"
                    : "the disk has room again: going on");
  disk_was_full_ = full;
}

void ProgressPrinter::show_failures(const Value& experiment) {
  for (const Value& job : field_or<ValueList>(experiment, "failed_jobs", {})) {
    std::fprintf(stderr, "failed %s: %s\n", text_field(job, "job").substr(0, 12).c_str(),
                 text_field(job, "message").c_str());
  }
}

}  // namespace prefgrid
