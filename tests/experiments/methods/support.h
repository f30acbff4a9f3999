// A tiny dataset and tokenizer for tests of methods.
#pragma once

#include <string>
#include <vector>

#include "experiments/datasets/dataset.h"
#include "worker/nn/tokenizer.h"

namespace prefgrid {

inline User make_user(const std::string& id, bool seen, std::vector<std::uint32_t> given_pairs = {},
                      std::vector<std::uint32_t> given_completions = {}) {
  User user;
  user.id = id;
  user.seen = seen;
  user.given_pairs = std::move(given_pairs);
  user.given_completions = std::move(given_completions);
  return user;
}

inline Tokenizer small_tokenizer() {
  const std::vector<std::string> texts = {"the server draws the window", "fix the driver.",
                                          "Fix the window manager", "the driver draws."};
  auto tokenizer = Tokenizer::train(texts, 280);
  PREFGRID_CHECK(tokenizer.ok(), "tokenizer");
  return *std::move(tokenizer);
}

}  // namespace prefgrid
