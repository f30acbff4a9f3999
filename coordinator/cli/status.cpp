#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "coordinator/cli/questions.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

struct StatusOptions {
  Target target;
  std::string experiment;
  bool json = false;
};

void print_counts(const std::string& name, const Value& counts) {
  std::string line = fmt::format("  {:<18}{:>8} / {:<8}", name, integer_field(counts, "done"),
                                 integer_field(counts, "total"));
  for (const char* state :
       {"running", "ready", "waiting", "retrying", "failed", "blocked", "cancelled"}) {
    const std::int64_t count = integer_field(counts, state);
    if (count > 0) line += fmt::format(" {} {}", count, state);
  }
  std::printf("%s\n", line.c_str());
}

void print_experiment(const Value& experiment) {
  const bool finished = field_or<bool>(experiment, "finished", false);
  std::printf("%s%s\n", text_field(experiment, "name").c_str(), finished ? " (finished)" : "");
  if (const std::string problem = text_field(experiment, "problem"); !problem.empty()) {
    std::printf("  %s\n", problem.c_str());
  }
  for (const Value& stage : field_or<ValueList>(experiment, "stages", {})) {
    print_counts(text_field(stage, "stage"), field_or<ValueMap>(stage, "counts", {}));
  }
  for (const Value& job : field_or<ValueList>(experiment, "failed_jobs", {})) {
    std::printf("  failed %s: %s\n", text_field(job, "job").substr(0, 12).c_str(),
                text_field(job, "message").c_str());
  }
}

void print_worker(const Value& worker) {
  const bool connected = field_or<bool>(worker, "connected", false);
  std::printf("  %s on %s: %lld executors, %lld leases%s\n", text_field(worker, "name").c_str(),
              text_field(worker, "host").c_str(),
              static_cast<long long>(integer_field(worker, "executors")),
              static_cast<long long>(integer_field(worker, "leases")),
              connected ? "" : ", not connected");
}

int print_status(const StatusOptions& options) {
  auto questions = Questions::open(options.target, options.experiment);
  if (!questions) return report_error(questions.error());
  ValueMap arguments;
  if (!options.experiment.empty()) arguments.emplace("experiment", options.experiment);
  auto answer = questions->ask("status", arguments);
  if (!answer) return report_error(answer.error());
  if (options.json) {
    std::printf("%s\n", value_to_json(*answer).dump(2).c_str());
    return exit_done;
  }
  if (!field_or<bool>(*answer, "live", false)) std::printf("no coordinator runs on this store\n");
  if (field_or<bool>(*answer, "disk_full", false)) {
    std::printf("the disk is full: nothing is committed until there is room\n");
  }
  for (const Value& experiment : field_or<ValueList>(*answer, "experiments", {})) {
    print_experiment(experiment);
  }
  const auto workers = field_or<ValueList>(*answer, "workers", {});
  if (!workers.empty()) std::printf("workers\n");
  for (const Value& worker : workers) print_worker(worker);
  return exit_done;
}

}  // namespace

VerbAction define_status(CLI::App& command) {
  auto options = std::make_shared<StatusOptions>();
  command.add_option("experiment", options->experiment, "Only this one");
  add_target_options(command, options->target);
  command.add_flag("--json", options->json, "Print JSON");
  return [options] { return print_status(*options); };
}

}  // namespace prefgrid
