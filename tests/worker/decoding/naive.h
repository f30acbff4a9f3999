// The direct ways, for comparison: one full forward pass per (position, candidate).
#pragma once

#include <vector>

#include "worker/nn/torch.h"
//
#include "common/random.h"
#include "worker/decoding/prompt_state.h"
#include "worker/nn/transformer.h"

namespace prefgrid {

inline Transformer random_model(std::uint64_t seed, std::int64_t kv_heads = 2) {
  ModelConfig config;
  config.vocab_size = 61;
  config.d_model = 32;
  config.layers = 3;
  config.heads = 4;
  config.kv_heads = kv_heads;
  config.head_dim = 8;
  config.d_ff = 48;
  config.max_tokens = 256;
  Transformer model = Transformer::initialise(config, seed);
  // Fresh weights are small and every prediction nearly uniform: blow them up.
  const at::NoGradGuard no_gradients;
  for (const auto& [name, parameter] : model.parameters()) {
    if (parameter.dim() == 2) at::Tensor(parameter).mul_(8);
  }
  return model;
}

inline std::vector<TokenId> random_tokens(std::uint64_t seed, std::size_t count,
                                          std::uint64_t vocabulary = 59) {
  RandomStream stream(seed, "tests/tokens");
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(stream.below(vocabulary)));
  }
  return tokens;
}

inline std::vector<TokenId> joined(std::vector<TokenId> left, std::vector<TokenId> right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Hidden state at the last of the tokens, by a whole forward pass. [d_model]
inline at::Tensor naive_state(const Transformer& model, const std::vector<TokenId>& tokens) {
  const at::NoGradGuard no_gradients;
  return model.train_forward(token_row(tokens))[0][static_cast<std::int64_t>(tokens.size()) - 1];
}

inline at::Tensor naive_log_probs(const Transformer& model, const std::vector<TokenId>& tokens) {
  return at::log_softmax(model.logits(naive_state(model, tokens)), -1);
}

}  // namespace prefgrid
