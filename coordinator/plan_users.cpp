#include "coordinator/plan_users.h"

#include <algorithm>

#include "common/text.h"
#include "coordinator/grid.h"

namespace prefgrid {
namespace {

constexpr std::size_t shown_users = 5;
constexpr auto train = static_cast<std::size_t>(Split::train);
constexpr auto test = static_cast<std::size_t>(Split::test);

// What every user must have, and for whose sake.
struct Needs {
  std::string test_pairs;
  std::string test_completions;
  std::string given;
  std::string seen_train_pairs;
};

Needs needs_of(const ExperimentSpec& spec, const Catalog& catalog) {
  Needs needs;
  const bool policy = has_policy_accuracy(spec, catalog);
  const std::string& scale =
      field_value(catalog.evaluation, spec.evaluation, "reward_scale").text();
  if (policy) needs.test_pairs = "policy accuracy";
  if (has_generation(spec, catalog)) needs.test_completions = "generation";
  for (const ConfiguredRow& row : spec.methods) {
    const MethodRow* method = catalog.method(row.name);
    if (method->has_reward) needs.test_pairs = "rm_accuracy of " + row.name;
    if (method->has_train) needs.seen_train_pairs = row.name;
    if (needs_given_items(*method)) {
      needs.given = row.name;
    } else if (method->has_reward && scale != "raw" && needs.given.empty()) {
      needs.given = "the reward scale of " + row.name;
    }
  }
  return needs;
}

// "" if the user has all that is needed.
std::string lack(const UserSummary& user, const Needs& needs) {
  if (!needs.test_pairs.empty() && user.pairs[test] == 0) {
    return "has 0 test pairs, and " + needs.test_pairs + " needs at least 1";
  }
  if (!needs.test_completions.empty() && user.completions[test] == 0) {
    return "has 0 test completions, and " + needs.test_completions + " needs at least 1";
  }
  if (!needs.given.empty() && user.given == 0) {
    return "has 0 given items, and " + needs.given + " needs at least 1";
  }
  return "";
}

// A section of data that nobody has is a matter of the spec, not of single users.
std::string lack_of_all(const DatasetSummary& dataset, const Needs& needs) {
  const auto nobody = [&](auto&& has) {
    return std::none_of(dataset.users.begin(), dataset.users.end(), has);
  };
  if (dataset.users.empty()) return "the dataset has no users";
  if (!needs.test_completions.empty() &&
      nobody([](const UserSummary& user) { return user.completions[test] > 0; })) {
    return "the dataset has no test completions to compare generations with; set "
           "generation_items: 0 in `evaluation`";
  }
  if (!needs.test_pairs.empty() &&
      nobody([](const UserSummary& user) { return user.pairs[test] > 0; })) {
    return "the dataset has no test pairs, and " + needs.test_pairs +
           " needs them; list methods without a reward and set policy_items: 0 in `evaluation`";
  }
  if (!needs.seen_train_pairs.empty() &&
      nobody([](const UserSummary& user) { return user.seen && user.pairs[train] > 0; })) {
    return "no seen user has train pairs, and " + needs.seen_train_pairs +
           " is trained on them; make some users seen";
  }
  return "";
}

}  // namespace

Result<UsableUsers> usable_users(const ExperimentSpec& spec, const DatasetSummary& dataset,
                                 const Catalog& catalog) {
  const Needs needs = needs_of(spec, catalog);
  if (const std::string problem = lack_of_all(dataset, needs); !problem.empty()) {
    return refused_at(spec, spec.dataset_mark, problem);
  }
  const bool skip = field_value(catalog.evaluation, spec.evaluation, "skip_small_users").boolean();
  UsableUsers out;
  out.users.reserve(dataset.users.size());
  std::vector<std::string> refused;
  for (const UserSummary& user : dataset.users) {
    const std::string problem = lack(user, needs);
    if (problem.empty()) {
      out.users.push_back(user);
    } else if (skip) {
      out.notes.push_back("user " + quoted(user.id, 80) + " is left out: it " + problem);
    } else {
      refused.push_back("user " + quoted(user.id, 80) + " " + problem);
    }
  }
  if (!refused.empty()) {
    std::string text;
    for (std::size_t i = 0; i < std::min(refused.size(), shown_users); ++i) {
      text += (i == 0 ? "" : "; ") + refused[i];
    }
    if (refused.size() > shown_users) {
      text += "; and " + std::to_string(refused.size() - shown_users) + " users more";
    }
    return refused_at(spec, spec.dataset_mark,
                      text + " (skip_small_users: true in `evaluation` leaves such users out)");
  }
  if (out.users.empty()) {
    return refused_at(spec, spec.dataset_mark, "every user is left out: " + out.notes.front());
  }
  return out;
}

}  // namespace prefgrid
