// Teacher-forced scores of a dataset's items under a policy: candidate sets, and the rewards of
// every candidate. What depends only on (policy, backbone, item) stays resident: the next method,
// rank or weight for the same user costs a product with its direction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/decoding/candidate_sets.h"
#include "worker/executor/jobs/reward_setup.h"

namespace prefgrid {

// One item of a dataset: a pair (two sides, chosen first) or a completion (one side).
struct ItemRef {
  bool is_pair = true;
  std::uint32_t index = 0;  // into Dataset::pairs or ::completions
};

// The first `count` test pairs or completions of a user, by hash.
std::vector<ItemRef> test_items(const Dataset& dataset, std::uint32_t user, bool pairs,
                                std::int64_t count);
// The first `count` of G_u: pairs where the user has any, else completions.
std::vector<ItemRef> given_items(const Dataset& dataset, std::uint32_t user, std::int64_t count);

struct ItemSets {
  std::vector<std::vector<TokenId>> responses;  // per side, end token included
  std::vector<CandidateSets> sides;
};

class ItemScorer {
 public:
  // Everything is borrowed and outlives this.
  ItemScorer(const JobEnvironment& job, const Dataset& dataset, const LoadedModel& policy,
             std::int64_t k, std::int64_t max_prompt_tokens)
      : job_(job),
        dataset_(dataset),
        policy_(policy),
        k_(k),
        max_prompt_tokens_(max_prompt_tokens) {}

  // The base policy's sets. Errors: a response that does not fit the model's context.
  Result<std::shared_ptr<const ItemSets>> base_sets(const ItemRef& item) const;
  // The same sets under the policy with examples before the prompt.
  Result<ItemSets> sets_with_examples(const ItemRef& item, const ItemSets& base,
                                      std::span<const TokenId> examples) const;
  // Per side [T, k + 1]: unscaled rewards of the candidates and of the real token. Errors: a
  // tokenizer other than the policy's; a reward that is not finite.
  Result<std::vector<std::vector<float>>> rewards(const ItemRef& item, const ItemSets& sets,
                                                  const JobReward& reward) const;
  // reward_scale `step`: the mean, over all candidate sets of the items (both sides of a pair), of
  // the deviation of r within the k candidates; rewards are divided by it. 1 where no set has any
  // deviation: such a reward cannot choose, whatever its scale.
  Result<double> step_scale(std::span<const ItemRef> items, const JobReward& reward) const;

 private:
  std::string item_key(const ItemRef& item) const;
  std::string item_name(const ItemRef& item) const;
  // Prompt tokens with room for the longest side in `model`'s context.
  Result<std::vector<TokenId>> prompt(const ItemRef& item, const ItemSets& sets,
                                      const LoadedModel& model,
                                      std::span<const TokenId> examples) const;
  Result<ItemSets> make_base_sets(const ItemRef& item) const;
  Result<std::vector<FeatureRows>> make_features(const ItemRef& item, const ItemSets& sets,
                                                 const JobReward& reward) const;

  const JobEnvironment& job_;
  const Dataset& dataset_;
  const LoadedModel& policy_;
  std::int64_t k_;
  std::int64_t max_prompt_tokens_;
};

}  // namespace prefgrid
