#include "coordinator/cli/stored_plans.h"

#include <unordered_set>
#include <utility>

#include "coordinator/cli/value_json.h"
#include "coordinator/loop/experiment_book.h"

namespace prefgrid {
namespace {

constexpr std::size_t keys_per_question = 32'768;

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

Result<void> ask_standings(Questions& questions, const std::vector<JobKey>& keys,
                           StoredPlans& stored) {
  std::string digits;
  for (const JobKey& key : keys) digits += key.hex();
  PREFGRID_ASSIGN(const Value answer, questions.ask("standings", {{"keys", std::move(digits)}}));
  const std::string letters = text_field(answer, "standings");
  if (letters.size() != keys.size()) {
    return Error{ErrorCode::internal, "the coordinator's answer has another number of jobs"};
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (letters[i] == 'd') stored.standings.emplace(keys[i], Standing::done);
    if (letters[i] == 'f') stored.standings.emplace(keys[i], Standing::failed);
  }
  return {};
}

}  // namespace

Result<StoredPlans> ask_stored_plans(Questions& questions, const Plan& plan) {
  StoredPlans stored;
  PREFGRID_ASSIGN(const Value status, questions.ask("status", {}));
  for (const Value& experiment : field_or<ValueList>(status, "experiments", {})) {
    auto expanded = ask_plan(questions, integer_field(experiment, "id"));
    if (expanded.ok()) stored.plans.push_back(*std::move(expanded));
  }
  std::unordered_set<JobKey> asked;
  std::vector<JobKey> keys;
  const auto ask_about_plan = [&](const Plan& one) -> Result<void> {
    for (std::size_t i = 0; i < one.jobs.size(); ++i) {
      if (!asked.insert(one.jobs.key(i)).second) continue;
      keys.push_back(one.jobs.key(i));
      if (keys.size() < keys_per_question) continue;
      PREFGRID_TRY(ask_standings(questions, std::exchange(keys, {}), stored));
    }
    return {};
  };
  PREFGRID_TRY(ask_about_plan(plan));
  for (const Plan& one : stored.plans) PREFGRID_TRY(ask_about_plan(one));
  if (!keys.empty()) PREFGRID_TRY(ask_standings(questions, keys, stored));
  return stored;
}

}  // namespace prefgrid
