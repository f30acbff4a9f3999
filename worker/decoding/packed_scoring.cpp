#include "worker/decoding/packed_scoring.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace prefgrid {
namespace {

struct Leaf {
  TokenId token;
  std::int64_t prefix;  // response tokens before it: t
};

// Where the state of each (t, candidate or y_t) lies in [prompt's last; prefix rows; leaves].
struct Layout {
  std::vector<Leaf> leaves;
  std::vector<std::int64_t> state_of;  // [T, k + 1]
};

// A candidate that equals y_t needs no row: it is the prefix row of y_t.
Layout make_layout(std::span<const TokenId> response, const CandidateSets& sets,
                   TokenId end_token) {
  Layout layout;
  const auto positions = sets.positions;
  for (std::int64_t t = 0; t < positions; ++t) {
    const TokenId real = response[static_cast<std::size_t>(t)];
    // State t stands for the prefix of t tokens: 0 is the prompt's last row.
    const auto existing = [&](TokenId token) -> std::int64_t {
      if (token == end_token) return t;
      return token == real ? t + 1 : -1;
    };
    for (std::int64_t j = 0; j < sets.k; ++j) {
      const TokenId token = sets.tokens[static_cast<std::size_t>(t * sets.k + j)];
      std::int64_t state = existing(token);
      if (state < 0) {
        state = positions + static_cast<std::int64_t>(layout.leaves.size());
        layout.leaves.push_back({token, t});
      }
      layout.state_of.push_back(state);
    }
    layout.state_of.push_back(existing(real));
  }
  return layout;
}

// Additive mask of `prefix_rows` causal rows and the leaves after them, over `prompt` tokens and
// `cached` rows of the prefix: [1, rows, prompt + cached + rows].
at::Tensor tree_mask(std::int64_t prompt, std::int64_t cached, std::int64_t prefix_rows,
                     std::span<const Leaf> leaves) {
  const std::int64_t rows = prefix_rows + static_cast<std::int64_t>(leaves.size());
  const std::int64_t columns = prompt + cached + rows;
  at::Tensor mask = at::full({1, rows, columns}, -std::numeric_limits<float>::infinity());
  float* cell = mask.data_ptr<float>();
  for (std::int64_t row = 0; row < rows; ++row, cell += columns) {
    const bool is_prefix = row < prefix_rows;
    const std::int64_t seen =
        is_prefix ? row + 1 : leaves[static_cast<std::size_t>(row - prefix_rows)].prefix;
    std::fill(cell, cell + prompt + seen, 0.0F);
    if (!is_prefix) cell[prompt + cached + row] = 0.0F;
  }
  return mask;
}

// One pass: the first `prefix_rows` tokens of the response (they enter the cache) and some leaves.
at::Tensor pass(const Transformer& backbone, KvCache& cache, std::int64_t prompt,
                std::span<const TokenId> response, std::int64_t prefix_rows,
                std::span<const Leaf> leaves) {
  std::vector<TokenId> tokens(response.begin(), response.begin() + prefix_rows);
  const std::int64_t rows = prefix_rows + static_cast<std::int64_t>(leaves.size());
  at::Tensor positions = at::empty({1, rows}, at::kLong);
  auto* position = positions.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < prefix_rows; ++row) *position++ = prompt + row;
  for (const Leaf& leaf : leaves) {
    tokens.push_back(leaf.token);
    *position++ = prompt + leaf.prefix;
  }
  const at::Tensor mask = tree_mask(prompt, cache.length - prompt, prefix_rows, leaves);
  return backbone.extend(token_row(tokens), positions, mask, cache, prefix_rows)[0];
}

}  // namespace

at::Tensor candidate_states(const Transformer& backbone, PromptState& prompt,
                            std::span<const TokenId> response, const CandidateSets& sets,
                            TokenId end_token) {
  PREFGRID_CHECK(
      static_cast<std::int64_t>(response.size()) == sets.positions && response.back() == end_token,
      "the sets belong to another response, or it does not end with the end token");
  c10::InferenceMode inference;
  const Layout layout = make_layout(response, sets, end_token);
  const std::int64_t length = prompt.cache.length;
  std::span<const Leaf> rest = layout.leaves;
  std::int64_t prefix_rows = sets.positions - 1;

  std::vector<at::Tensor> states = {prompt.last_hidden.unsqueeze(0)};
  while (prefix_rows > 0 || !rest.empty()) {
    const std::int64_t room = std::max<std::int64_t>(packed_rows_per_pass - prefix_rows, 0);
    const auto leaves = rest.first(std::min(rest.size(), static_cast<std::size_t>(room)));
    states.push_back(pass(backbone, prompt.cache, length, response, prefix_rows, leaves));
    rest = rest.subspan(leaves.size());
    prefix_rows = 0;
  }
  prompt.cache.length = length;
  const at::Tensor index = at::tensor(layout.state_of, at::kLong);
  return at::cat(states).index_select(0, index).view({sets.positions, sets.k + 1, -1});
}

}  // namespace prefgrid
