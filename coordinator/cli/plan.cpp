#include "coordinator/plan.h"

#include <filesystem>
#include <memory>

#include "coordinator/cli/prepare.h"
#include "coordinator/cli/stored_plans.h"
#include "coordinator/cli/verb.h"
#include "coordinator/plan_diff.h"

namespace prefgrid {
namespace {

struct PlanOptions {
  Target target;
  std::string spec;
  bool json = false;
};

// Where nothing has run yet, everything is to run; a note says which store was looked for.
Result<StoredPlans> stored_plans(const PlanOptions& options, PreparedExperiment& prepared) {
  const std::string& name = prepared.spec.experiment;
  if (options.target.connect.empty()) {
    PREFGRID_ASSIGN(const std::filesystem::path folder, store_folder(options.target, name));
    std::error_code ignored;
    if (!std::filesystem::exists(folder / "db", ignored)) {
      prepared.plan.notes.push_back("there is no store at " + folder.string() +
                                    " yet: everything counts as new");
      return StoredPlans{};
    }
  }
  PREFGRID_ASSIGN(Questions questions, Questions::open(options.target, name));
  return ask_stored_plans(questions, prepared.plan);
}

int print_plan(const PlanOptions& options, Output& out) {
  auto prepared = prepare(options.spec);
  if (!prepared) return report_error(prepared.error());
  const auto stored = stored_plans(options, *prepared);
  if (!stored) return report_error(stored.error());
  const PlanDiff diff = diff_plan(
      prepared->plan, stored->plans, [&](const JobKey& key) { return stored->standing(key); },
      catalog());
  const auto& notes = prepared->plan.notes;
  const std::string where = !options.target.store.empty() ? " --store " + options.target.store
                            : !options.target.connect.empty()
                                ? " --connect " + options.target.connect
                                : "";
  out.print(options.json ? plan_diff_json(diff, notes)
                         : plan_diff_text(diff, options.spec + where, notes));
  return exit_done;
}

}  // namespace

VerbAction define_plan(CLI::App& command) {
  auto options = std::make_shared<PlanOptions>();
  command.add_option("SPEC", options->spec, "The experiment's YAML file")->required();
  add_target_options(command, options->target);
  command.add_flag("--json", options->json, "Print JSON");
  return [options](Output& out) { return print_plan(*options, out); };
}

}  // namespace prefgrid
