// A linear reward on a backbone's hidden states. The k candidates of a step are leaves of a tree
// over the backbone's key/value cache: one row each. The chosen leaf's keys and values are kept, so
// an accepted token costs nothing more.
#pragma once

#include "worker/decoding/batch_prompts.h"
#include "worker/decoding/reward.h"

namespace prefgrid {

class HiddenStateReward : public CandidateReward {
 public:
  // Borrows `backbone`, which must outlive this. `region` as in prefill_batch; `max_new_tokens`
  // steps at most will be asked for, with `k` candidates each.
  HiddenStateReward(const Transformer& backbone, const LinearHead& head,
                    std::span<const std::vector<TokenId>> prompts, std::int64_t region,
                    std::int64_t max_new_tokens, std::int64_t k, TokenId end_token);

  std::vector<float> score(std::span<const TokenId> candidates) override;
  void choose(std::span<const std::int32_t> chosen) override;

 private:
  const Transformer& backbone_;
  at::Tensor direction_;  // [d_model]
  std::int64_t k_;
  TokenId end_token_;
  BatchState state_;
  std::vector<float> prefix_rewards_;  // [items], of the responses so far
  std::vector<float> leaf_rewards_;    // [items, k], of the last call of score
};

}  // namespace prefgrid
