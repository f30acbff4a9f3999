#include <fmt/format.h>

#include <memory>

#include "coordinator/cli/experiments_asked.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

struct StatusOptions {
  Target target;
  std::string experiment;
  bool json = false;
};

std::string counts_text(const std::string& name, const Value& counts) {
  std::string line = fmt::format("  {:<18}{:>8} / {:<8}", name, integer_field(counts, "done"),
                                 integer_field(counts, "total"));
  for (const char* state :
       {"running", "ready", "waiting", "retrying", "failed", "blocked", "cancelled"}) {
    const std::int64_t count = integer_field(counts, state);
    if (count > 0) line += fmt::format(" {} {}", count, state);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string experiment_text(const Value& experiment) {
  const char* state = field_or<bool>(experiment, "cancelled", false)  ? ", cancelled"
                      : field_or<bool>(experiment, "finished", false) ? ", finished"
                                                                      : "";
  std::string text = fmt::format("{} (id {}{})\n", text_field(experiment, "name"),
                                 integer_field(experiment, "id"), state);
  if (const std::string problem = text_field(experiment, "problem"); !problem.empty()) {
    text += "  " + problem + "\n";
  }
  for (const Value& stage : field_or<ValueList>(experiment, "stages", {})) {
    text += counts_text(text_field(stage, "stage"), field_or<ValueMap>(stage, "counts", {}));
  }
  for (const Value& job : field_or<ValueList>(experiment, "failed_jobs", {})) {
    text += fmt::format("  failed {}: {}\n", text_field(job, "job").substr(0, 12),
                        text_field(job, "message"));
  }
  return text;
}

std::string worker_text(const Value& worker) {
  const bool connected = field_or<bool>(worker, "connected", false);
  const std::string waits_for = text_field(worker, "waits_for");
  return fmt::format("  {} on {}: {} executors, {} leases{}{}{}\n", text_field(worker, "name"),
                     text_field(worker, "host"), integer_field(worker, "executors"),
                     integer_field(worker, "leases"),
                     field_or<bool>(worker, "draining", false) ? ", draining" : "",
                     connected ? "" : ", not connected",
                     waits_for.empty() ? "" : "; it waits: " + waits_for);
}

std::string status_text(const Value& answer) {
  std::string text;
  if (!field_or<bool>(answer, "live", false)) text += "no coordinator runs on this store\n";
  if (field_or<bool>(answer, "disk_full", false)) {
    text += "the disk is full: nothing is committed until there is room\n";
  }
  const auto experiments = field_or<ValueList>(answer, "experiments", {});
  if (experiments.empty()) text += "no experiment yet\n";
  for (const Value& experiment : experiments) text += experiment_text(experiment);
  const auto workers = field_or<ValueList>(answer, "workers", {});
  if (!workers.empty()) text += "workers\n";
  for (const Value& worker : workers) text += worker_text(worker);
  return text;
}

int print_status(const StatusOptions& options, Output& out) {
  auto asked = ask_about(options.target, options.experiment);
  if (!asked) return report_error(asked.error());
  const auto answer = asked->questions.ask("status", asked->arguments);
  if (!answer) return report_error(answer.error());
  out.print(options.json ? value_to_json(*answer).dump(2) + "\n" : status_text(*answer));
  return exit_done;
}

}  // namespace

VerbAction define_status(CLI::App& command) {
  auto options = std::make_shared<StatusOptions>();
  command.add_option("EXPERIMENT", options->experiment,
                     "Only this one: its spec file, name, start of its name, or id (default: all). "
                     "Without --store and --connect the store is runs/NAME");
  add_target_options(command, options->target);
  command.add_flag("--json", options->json, "Print JSON");
  return [options](Output& out) { return print_status(*options, out); };
}

}  // namespace prefgrid
