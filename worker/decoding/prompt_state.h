// A prompt inside a model: its keys and values, from which any number of responses is scored.
#pragma once

#include <cstdint>
#include <span>

#include "worker/nn/tokenizer.h"
#include "worker/nn/transformer.h"

namespace prefgrid {

struct PromptState {
  KvCache cache;           // batch 1; length = the prompt's tokens
  at::Tensor last_hidden;  // [d_model], after the final norm, at the prompt's last token
};

// [1, tokens] int64, as the transformer takes them.
at::Tensor token_row(std::span<const TokenId> tokens);

// [1, count] int64: first, first + 1, ...
at::Tensor position_row(std::int64_t first, std::int64_t count);

// `prompt` is not empty (it opens with the begin token). `capacity`: cache rows beyond the prompt.
PromptState prefill(const Transformer& model, std::span<const TokenId> prompt,
                    std::int64_t capacity);

// log π(· | prompt, y<t) for t = 1..T: [T, vocabulary], fp32. The response ends with the end token,
// whose own row is not computed: nothing follows it. The prompt's cache is left as it was.
at::Tensor response_log_probs(const Transformer& model, PromptState& prompt,
                              std::span<const TokenId> response);

}  // namespace prefgrid
