// rm_accuracy and policy_accuracy: one user's share of test pairs that are ordered right.
#include <cmath>

#include "common/text.h"
#include "experiments/catalog/method_rows.h"
#include "experiments/methods/prompts.h"
#include "worker/executor/jobs/item_scores.h"
#include "worker/executor/jobs/job_table.h"

namespace prefgrid {
namespace {

// 1 where the first is larger, 0 where the second is, one half of a tie.
double hit(double chosen, double rejected) {
  return chosen > rejected ? 1 : chosen < rejected ? 0 : 0.5;
}

// S of both sides of one pair, and their lengths T.
struct PairScore {
  double chosen = 0;
  double rejected = 0;
  double chosen_tokens = 1;
  double rejected_tokens = 1;

  double hit() const { return prefgrid::hit(chosen, rejected); }
  double hit_per_token() const {
    return prefgrid::hit(chosen / chosen_tokens, rejected / rejected_tokens);
  }
};

class Tally {
 public:
  void add(const std::string& name, std::optional<double> weight, double value,
           std::uint64_t count = 1) {
    for (Metric& metric : metrics_) {
      if (metric.name != name || metric.weight != weight) continue;
      metric.sum += value;
      metric.count += count;
      return;
    }
    metrics_.push_back({name, weight, value, count, 0});
  }
  // The three figures that stand at each weight.
  void add_figures(std::optional<double> weight, const PairScore& score, const PairScore& base) {
    add("policy_accuracy", weight, score.hit());
    add("policy_accuracy_per_token", weight, score.hit_per_token());
    add("flip_rate", weight, score.hit() != base.hit() ? 1 : 0);
  }
  std::vector<Metric> take() { return std::move(metrics_); }

 private:
  std::vector<Metric> metrics_;
};

PairScore pair_score(const ItemSets& sets, double chosen, double rejected) {
  return {chosen, rejected, static_cast<double>(sets.sides[0].positions),
          static_cast<double>(sets.sides[1].positions)};
}

// Without a reward: log π(y) normalised over the candidate sets.
PairScore plain_score(const ItemSets& sets) {
  const double weight[1] = {0};
  double side[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const std::vector<float> none(
        static_cast<std::size_t>(sets.sides[i].positions * (sets.sides[i].k + 1)), 0.0F);
    side[i] = guided_log_probability(sets.sides[i], none, weight)[0];
  }
  return pair_score(sets, side[0], side[1]);
}

void add_controls(Tally& tally, const ItemSets& base, const ItemSets& own) {
  tally.add("policy_accuracy_base", std::nullopt, plain_score(base).hit());
  tally.add("policy_accuracy_full_vocabulary", std::nullopt,
            hit(own.sides[0].log_probability(), own.sides[1].log_probability()));
  for (const CandidateSets& side : base.sides) {
    tally.add("forced_token_rate", std::nullopt, static_cast<double>(side.forced()),
              static_cast<std::uint64_t>(side.positions));
  }
}

Result<std::vector<double>> job_weights(const JobEnvironment& job) {
  const Value* given = job.extra("weights");
  if (given == nullptr) return policy_accuracy_weights();
  std::vector<double> weights;
  const bool is_list = std::holds_alternative<ValueList>(*given);
  for (const Value& value : is_list ? given->list() : ValueList{}) {
    const bool good =
        std::holds_alternative<double>(value) && std::isfinite(value.real()) && value.real() >= 0;
    if (!good) break;
    weights.push_back(value.real());
  }
  if (!is_list || weights.empty() || weights.size() != given->list().size()) {
    return invalid_input("policy_accuracy: \"weights\" must be a list of reals, 0 or larger");
  }
  return weights;
}

struct PolicyAccuracy {
  const JobEnvironment& job;
  const Dataset& dataset;
  std::uint32_t user;
  const JobMethod& method;
  const LoadedModel& policy;
  const ItemScorer& scorer;
  std::vector<ItemRef> items;
};

void report(const PolicyAccuracy& run, std::size_t done) {
  run.job.context().progress(done, run.items.size(), std::nullopt);
}

Result<JobResult> without_reward(const PolicyAccuracy& run) {
  std::vector<TokenId> examples;
  if (find_field(run.method.row->fields, "shots") != nullptr) {
    const InContextOptions options{run.method.field("shots").integer(),
                                   run.method.field("shot_prompt_tokens").integer()};
    PREFGRID_ASSIGN(examples,
                    in_context_examples(run.policy.tokenizer, run.dataset, run.user, options));
  }
  Tally tally;
  for (std::size_t i = 0; i < run.items.size(); ++i) {
    PREFGRID_ASSIGN(const auto base, run.scorer.base_sets(run.items[i]));
    ItemSets own = *base;
    if (!examples.empty()) {
      PREFGRID_ASSIGN(own, run.scorer.sets_with_examples(run.items[i], *base, examples));
    }
    tally.add_figures(std::nullopt, plain_score(own), plain_score(*base));
    add_controls(tally, *base, own);
    report(run, i + 1);
  }
  JobResult result;
  result.metrics = tally.take();
  return result;
}

Result<JobResult> with_reward(const PolicyAccuracy& run) {
  PREFGRID_ASSIGN(const JobReward reward, job_reward(run.job, run.method, run.dataset, run.user));
  PREFGRID_ASSIGN(const std::vector<double> weights, job_weights(run.job));
  double scale = 1;
  if (run.job.text("reward_scale") == "step") {
    const auto given = given_items(run.dataset, run.user, run.job.integer("scale_items"));
    PREFGRID_ASSIGN(scale, run.scorer.step_scale(given, reward));
  }
  // Weights over the scale rather than rewards over it: the same product.
  std::vector<double> scaled_weights;
  for (const double weight : weights) scaled_weights.push_back(weight / scale);
  Tally tally;
  for (std::size_t i = 0; i < run.items.size(); ++i) {
    PREFGRID_ASSIGN(const auto sets, run.scorer.base_sets(run.items[i]));
    PREFGRID_ASSIGN(const auto rewards, run.scorer.rewards(run.items[i], *sets, reward));
    const PairScore base = plain_score(*sets);
    const auto chosen = guided_log_probability(sets->sides[0], rewards[0], scaled_weights);
    const auto rejected = guided_log_probability(sets->sides[1], rewards[1], scaled_weights);
    for (std::size_t w = 0; w < weights.size(); ++w) {
      tally.add_figures(weights[w], pair_score(*sets, chosen[w], rejected[w]), base);
    }
    add_controls(tally, *sets, *sets);
    report(run, i + 1);
  }
  JobResult result;
  result.metrics = tally.take();
  result.metrics.push_back(single("reward_scale", scale));
  return result;
}

}  // namespace

Result<JobResult> run_rm_accuracy(const JobEnvironment& job) {
  PREFGRID_ASSIGN(const auto dataset, job.dataset());
  PREFGRID_ASSIGN(const std::uint32_t user, job.user(*dataset));
  PREFGRID_ASSIGN(const JobMethod method, job_method(job));
  PREFGRID_ASSIGN(const JobReward reward, job_reward(job, method, *dataset, user));
  Tally tally;
  for (const std::uint32_t pair : dataset->pairs_of(user, Split::test)) {
    const double chosen = row_reward(reward.features->chosen, pair, reward.head);
    const double rejected = row_reward(reward.features->rejected, pair, reward.head);
    if (!std::isfinite(chosen) || !std::isfinite(rejected)) {
      return Error{ErrorCode::internal, "rm_accuracy: the reward of pair " +
                                            quoted(dataset->pairs[pair].id) +
                                            " is not finite; the reward model's training diverged"};
    }
    tally.add("rm_accuracy", std::nullopt, hit(chosen, rejected));
    tally.add("rm_tie_rate", std::nullopt, chosen == rejected ? 1 : 0);
  }
  JobResult result;
  result.metrics = tally.take();
  if (result.metrics.empty()) {
    return invalid_input("rm_accuracy: user " + quoted(dataset->users[user].id) +
                         " has no test pairs");
  }
  return result;
}

Result<JobResult> run_policy_accuracy(const JobEnvironment& job) {
  PREFGRID_ASSIGN(const auto dataset, job.dataset());
  PREFGRID_ASSIGN(const std::uint32_t user, job.user(*dataset));
  PREFGRID_ASSIGN(const JobMethod method, job_method(job));
  PREFGRID_ASSIGN(const auto policy, job.model("policy"));
  const ItemScorer scorer(job, *dataset, *policy, job.integer("k"),
                          job.integer("max_prompt_tokens"));
  const PolicyAccuracy run{job,
                           *dataset,
                           user,
                           method,
                           *policy,
                           scorer,
                           test_items(*dataset, user, true, job.integer("items"))};
  if (run.items.empty()) {
    return invalid_input("policy_accuracy: user " + quoted(dataset->users[user].id) +
                         " has no test pairs");
  }
  return method.row->has_reward ? with_reward(run) : without_reward(run);
}

}  // namespace prefgrid
