#include "worker/decoding/prompt_state.h"

#include <vector>

namespace prefgrid {

at::Tensor token_row(std::span<const TokenId> tokens) {
  at::Tensor row = at::empty({1, static_cast<std::int64_t>(tokens.size())}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), row.data_ptr<std::int64_t>());
  return row;
}

at::Tensor position_row(std::int64_t first, std::int64_t count) {
  return at::arange(first, first + count, at::kLong).unsqueeze(0);
}

PromptState prefill(const Transformer& model, std::span<const TokenId> prompt,
                    std::int64_t capacity) {
  PREFGRID_CHECK(!prompt.empty(), "a prompt has at least its begin token");
  c10::InferenceMode inference;
  const auto length = static_cast<std::int64_t>(prompt.size());
  PromptState state;
  state.cache = model.make_cache(1, length + capacity);
  const at::Tensor hidden =
      model.extend(token_row(prompt), position_row(0, length), {}, state.cache, length);
  state.last_hidden = hidden[0][length - 1].clone();
  return state;
}

at::Tensor response_log_probs(const Transformer& model, PromptState& prompt,
                              std::span<const TokenId> response) {
  PREFGRID_CHECK(!response.empty(), "a response has at least its end token");
  c10::InferenceMode inference;
  const auto rows = static_cast<std::int64_t>(response.size()) - 1;
  at::Tensor hidden = prompt.last_hidden.unsqueeze(0);
  if (rows > 0) {
    const at::Tensor tokens = token_row(response.first(response.size() - 1));
    const at::Tensor positions = position_row(prompt.cache.length, rows);
    hidden = at::cat({hidden, model.extend(tokens, positions, {}, prompt.cache, 0)[0]});
  }
  return at::log_softmax(model.logits(hidden), -1).contiguous();
}

}  // namespace prefgrid
