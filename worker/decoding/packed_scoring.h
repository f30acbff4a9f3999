// Teacher-forced scoring in one packed pass. The hidden states of every prefix of a response and of
// every candidate at every position come from T·(1+k) rows over the prompt's cache, where the
// direct way makes T·k passes: a candidate extends a shared prefix, so it costs one row. Rows see
// the prompt, the response's tokens before their own position, and themselves (a tree mask).
#pragma once

#include <cstdint>
#include <span>

#include "worker/decoding/candidate_sets.h"
#include "worker/decoding/prompt_state.h"

namespace prefgrid {

// Rows that one pass may have: beyond it the leaves follow in further passes over the prefix's
// cache. A constant, for the last bits of a state depend on a pass's shape.
inline constexpr std::int64_t packed_rows_per_pass = 1'024;

// Cache rows beyond the prompt that `candidate_states` needs for a response of T tokens.
inline constexpr std::int64_t packed_capacity(std::int64_t positions) {
  return positions;
}

// [T, k + 1, d_model] fp32: the reward backbone's states at the candidates of `sets` and, last, at
// y_t. As a candidate the end token has the state of the prefix before it (for the empty prefix: of
// the prompt's last token). Candidates come from a policy with the same tokenizer.
at::Tensor candidate_states(const Transformer& backbone, PromptState& prompt,
                            std::span<const TokenId> response, const CandidateSets& sets,
                            TokenId end_token);

}  // namespace prefgrid
