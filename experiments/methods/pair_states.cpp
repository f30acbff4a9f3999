#include "experiments/methods/pair_states.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "worker/decoding/prompt_state.h"

namespace prefgrid {

at::Tensor pair_states(const Transformer& backbone, std::span<const TokenId> prompt,
                       std::span<const TokenId> chosen, std::span<const TokenId> rejected) {
  PREFGRID_CHECK(!prompt.empty() && !chosen.empty() && !rejected.empty(),
                 "prompts begin and responses end with their special token");
  c10::InferenceMode inference;
  const auto first = static_cast<std::int64_t>(prompt.size());
  const std::span<const TokenId> sides[2] = {chosen.first(chosen.size() - 1),
                                             rejected.first(rejected.size() - 1)};
  std::vector<TokenId> tokens(prompt.begin(), prompt.end());
  std::vector<std::int64_t> places(prompt.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(i);
  std::vector<std::int64_t> last;
  for (const auto side : sides) {
    tokens.insert(tokens.end(), side.begin(), side.end());
    const auto length = static_cast<std::int64_t>(side.size());
    for (std::int64_t i = 0; i < length; ++i) places.push_back(first + i);
    last.push_back(side.empty() ? first - 1 : static_cast<std::int64_t>(tokens.size()) - 1);
  }
  const auto rows = static_cast<std::int64_t>(tokens.size());
  at::Tensor mask = at::full({1, rows, rows}, -std::numeric_limits<float>::infinity());
  const std::int64_t second = first + static_cast<std::int64_t>(sides[0].size());
  float* cell = mask.data_ptr<float>();
  for (std::int64_t row = 0; row < rows; ++row, cell += rows) {
    std::fill(cell, cell + std::min(row + 1, first), 0.0F);
    if (row >= first) std::fill(cell + (row < second ? first : second), cell + row + 1, 0.0F);
  }
  const at::Tensor positions = at::tensor(places, at::kLong).unsqueeze(0);
  KvCache cache = backbone.make_cache(1, rows);
  const at::Tensor hidden = backbone.extend(token_row(tokens), positions, mask, cache, 0)[0];
  return hidden.index_select(0, at::tensor(last, at::kLong));
}

}  // namespace prefgrid
