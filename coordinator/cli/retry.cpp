// The two verbs that change an experiment that is there already.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "coordinator/cli/experiments_asked.h"
#include "coordinator/cli/progress.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

struct ChangeOptions {
  Target target;
  std::string experiment;
  bool failed = false;
  bool json = false;
};

struct Changed {
  Value before;  // progress
  Value after;
  std::string name;
  bool live = false;
};

Result<Changed> change(const std::string& verb, const ChangeOptions& options) {
  PREFGRID_ASSIGN(AskedExperiment asked,
                  ask_about(options.target, options.experiment, Access::change));
  PREFGRID_ASSIGN(const Value status, asked.questions.ask("status", asked.arguments));
  const auto experiments = field_or<ValueList>(status, "experiments", {});
  Changed changed;
  if (!experiments.empty()) changed.before = experiments.back();
  PREFGRID_ASSIGN(const Value answer, asked.questions.ask(verb, asked.arguments));
  changed.after = field_or<ValueMap>(answer, "progress", {});
  changed.name = text_field(changed.after, "name");
  changed.live = asked.questions.live();
  return changed;
}

int retry(const ChangeOptions& options, Output& out) {
  const auto changed = change("retry", options);
  if (!changed) return report_error(changed.error());
  if (field_or<bool>(changed->after, "cancelled", false)) {
    return report_refusal(invalid_input(changed->name + " is cancelled: run or submit its spec "
                                                        "to take it up again"));
  }
  if (options.json) {
    out.print(value_to_json(changed->after).dump(2) + "\n");
    return exit_done;
  }
  const JobTotals before = job_totals(changed->before);
  std::string text = changed->name + ": ";
  const Value counts = field_or<ValueMap>(changed->before, "counts", {});
  const std::int64_t resting = integer_field(counts, "retrying");
  if (before.failed == 0 && resting > 0) {
    text += fmt::format(
        "no job has failed for good; {} that rested after a failure need not wait\n", resting);
  } else if (before.failed == 0) {
    text += "no job has failed for good\n";
  } else {
    text += fmt::format("{} failed {} again", before.failed,
                        before.failed == 1 ? "job may run" : "jobs may run");
    if (before.blocked > 0) text += fmt::format(", and {} that waited for them", before.blocked);
    text += changed->live ? "\n" : "; `prefgrid run` with its spec goes on\n";
  }
  out.print(text);
  return exit_done;
}

int cancel(const ChangeOptions& options, Output& out) {
  const auto changed = change("cancel", options);
  if (!changed) return report_error(changed.error());
  if (options.json) {
    out.print(value_to_json(changed->after).dump(2) + "\n");
    return exit_done;
  }
  const bool was = field_or<bool>(changed->before, "cancelled", false);
  const Value counts = field_or<ValueMap>(changed->after, "counts", {});
  out.print(fmt::format(
      "{}: {}; {} results stay, {} jobs will not run. Run or submit its spec to take it up again\n",
      changed->name, was ? "it was cancelled before" : "cancelled", integer_field(counts, "done"),
      integer_field(counts, "total") - integer_field(counts, "done")));
  return exit_done;
}

std::shared_ptr<ChangeOptions> define_change(CLI::App& command) {
  auto options = std::make_shared<ChangeOptions>();
  command.add_option("EXPERIMENT", options->experiment, experiment_help);
  add_target_options(command, options->target);
  command.add_flag("--json", options->json, "Print JSON: the experiment's progress afterwards");
  return options;
}

}  // namespace

VerbAction define_retry(CLI::App& command) {
  auto options = define_change(command);
  command.add_flag("--failed", options->failed,
                   "Exactly the jobs that failed for good (the default)");
  return [options](Output& out) { return retry(*options, out); };
}

VerbAction define_cancel(CLI::App& command) {
  auto options = define_change(command);
  return [options](Output& out) { return cancel(*options, out); };
}

}  // namespace prefgrid
