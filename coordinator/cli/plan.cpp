#include "coordinator/plan.h"

#include <cstdio>
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

Result<StoredPlans> stored_plans(const PlanOptions& options, const std::string& experiment) {
  const std::filesystem::path folder = options.target.store.empty()
                                           ? std::filesystem::path("runs") / experiment
                                           : std::filesystem::path(options.target.store);
  std::error_code ignored;
  if (options.target.connect.empty() && !std::filesystem::exists(folder / "db", ignored)) {
    return StoredPlans{};  // nothing has run there yet
  }
  PREFGRID_ASSIGN(Questions questions, Questions::open(options.target, experiment));
  return ask_stored_plans(questions);
}

int print_plan(const PlanOptions& options) {
  const auto prepared = prepare(options.spec);
  if (!prepared) return report_error(prepared.error());
  const auto stored = stored_plans(options, prepared->spec.experiment);
  if (!stored) return report_error(stored.error());
  const PlanDiff diff = diff_plan(
      prepared->plan, stored->plans, [&](const JobKey& key) { return stored->done.contains(key); },
      catalog());
  const std::string text = options.json ? plan_diff_json(diff, prepared->plan.notes)
                                        : plan_diff_text(diff, prepared->plan.notes);
  std::fputs(text.c_str(), stdout);
  return exit_done;
}

}  // namespace

VerbAction define_plan(CLI::App& command) {
  auto options = std::make_shared<PlanOptions>();
  command.add_option("spec", options->spec, "The experiment's YAML file")->required();
  add_target_options(command, options->target);
  command.add_flag("--json", options->json, "Print JSON");
  return [options] { return print_plan(*options); };
}

}  // namespace prefgrid
