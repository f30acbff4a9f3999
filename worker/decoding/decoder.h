// Greedy and reward-guided (ARGS) decoding, batched over the items of one job.
// ARGS: of the policy's k likeliest tokens the one with the highest log π(v) + w·r(x, y<t∘v).
// Source: Khanov et al., "ARGS: Alignment as Reward-Guided Search", ICLR 2024; here it stops at the
// end token, which the published loop does not.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/result.h"
#include "worker/decoding/reward.h"
#include "worker/nn/transformer.h"

namespace prefgrid {

struct DecodeOptions {
  std::int64_t region = 0;  // at least the longest prompt; fixed by the job, not by its items
  std::int64_t max_new_tokens = 0;  // the end token counts
  std::int64_t k = 1;               // candidates per step
  double weight = 0;                // w, of the reward as the reward object gives it
  TokenId end_token = 0;
};

struct Decoded {
  std::vector<TokenId> tokens;  // without the end token
  bool ended = false;           // false: cut at max_new_tokens
};

// `progress` is called once a step. Errors: a reward that is not finite, naming item and step.
Result<std::vector<Decoded>> decode_guided(const Transformer& policy,
                                           std::span<const std::vector<TokenId>> prompts,
                                           const DecodeOptions& options, CandidateReward& reward,
                                           const std::function<void(std::int64_t)>& progress);

// The likeliest token at every step; ties go to the smaller token.
std::vector<Decoded> decode_greedy(const Transformer& policy,
                                   std::span<const std::vector<TokenId>> prompts,
                                   const DecodeOptions& options,
                                   const std::function<void(std::int64_t)>& progress);

}  // namespace prefgrid
