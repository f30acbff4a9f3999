// What guided decoding asks of a reward: r_u(x, y<t∘v) for the k candidates v of every item of a
// batch, step by step. Two realisations: HiddenStateReward (a head on a backbone's hidden states;
// worker/decoding/hidden_state_reward.h) and TextReward (experiments/methods/text_reward.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/nn/tokenizer.h"

namespace prefgrid {

// r = direction · φ: linear on features (hidden states, bags of words).
struct LinearHead {
  std::vector<float> direction;  // [F]
};

// Follows a batch of responses as they grow. Lives as long as one decoding; single-threaded.
class CandidateReward {
 public:
  virtual ~CandidateReward() = default;

  // candidates: [items, k] row-major, k the same in every call. Returns r(x, y<t∘v), [items, k].
  // The end token has the reward of the prefix before it. May be NaN or infinite: the caller looks.
  virtual std::vector<float> score(std::span<const TokenId> candidates) = 0;

  // After `score`: which candidate each item takes, [items]. Items that are finished take any.
  virtual void choose(std::span<const std::int32_t> chosen) = 0;
};

}  // namespace prefgrid
