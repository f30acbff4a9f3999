#include "coordinator/cli/stored_plans.h"

#include <utility>

#include "coordinator/cli/value_json.h"
#include "coordinator/loop/experiment_book.h"

namespace prefgrid {
namespace {

Result<Plan> ask_plan(Questions& questions, std::int64_t experiment) {
  PREFGRID_ASSIGN(const Value answer, questions.ask("spec", {{"experiment", experiment}}));
  ExperimentRecord record;
  record.name = text_field(answer, "name");
  record.spec = field_or<ValueMap>(answer, "spec", {});
  record.spec_text = text_field(answer, "spec_text");
  record.dataset = field_or<ValueMap>(answer, "dataset", {});
  const auto digest = ArtifactDigest::from_hex(text_field(answer, "dataset_digest"));
  if (!digest) return invalid_input("the coordinator's answer names no dataset");
  record.dataset_digest = *digest;
  return catalog_planner()(record);
}

}  // namespace

Result<StoredPlans> ask_stored_plans(Questions& questions) {
  StoredPlans stored;
  PREFGRID_ASSIGN(const Value status, questions.ask("status", {}));
  for (const Value& experiment : field_or<ValueList>(status, "experiments", {})) {
    auto plan = ask_plan(questions, integer_field(experiment, "id"));
    if (plan.ok()) stored.plans.push_back(*std::move(plan));
  }
  PREFGRID_ASSIGN(const Value executions, questions.ask("executions", {}));
  for (const auto& [hex, counts] : field_or<ValueMap>(executions, "jobs", {})) {
    const auto key = JobKey::from_hex(hex);
    if (key && integer_field(counts, "done") > 0) stored.done.insert(*key);
  }
  return stored;
}

}  // namespace prefgrid
