#include "worker/decoding/batch_prompts.h"

#include <algorithm>
#include <limits>

#include "worker/decoding/prompt_state.h"

namespace prefgrid {

BatchState prefill_batch(const Transformer& model, std::span<const std::vector<TokenId>> prompts,
                         std::int64_t region, std::int64_t capacity) {
  PREFGRID_CHECK(!prompts.empty(), "a batch of no prompts");
  c10::InferenceMode inference;
  const auto items = static_cast<std::int64_t>(prompts.size());
  BatchState state;
  state.region = region;
  state.cache = model.make_cache(items, region + capacity);
  // Rows that are masked are still multiplied, by zero: they must not hold NaN.
  for (at::Tensor& keys : state.cache.keys) keys.zero_();
  for (at::Tensor& values : state.cache.values) values.zero_();

  std::vector<at::Tensor> hidden;
  for (std::int64_t item = 0; item < items; ++item) {
    const std::vector<TokenId>& prompt = prompts[static_cast<std::size_t>(item)];
    const auto length = static_cast<std::int64_t>(prompt.size());
    PREFGRID_CHECK(length <= region, "a prompt of " + std::to_string(length) +
                                         " tokens in a region of " + std::to_string(region));
    const PromptState one = prefill(model, prompt, 0);
    for (std::size_t layer = 0; layer < one.cache.keys.size(); ++layer) {
      const auto copy = [&](const at::Tensor& from, at::Tensor& to) {
        to[item].narrow(1, 0, length).copy_(from[0].narrow(1, 0, length));
      };
      copy(one.cache.keys[layer], state.cache.keys[layer]);
      copy(one.cache.values[layer], state.cache.values[layer]);
    }
    state.lengths.push_back(length);
    hidden.push_back(one.last_hidden);
  }
  state.last_hidden = at::stack(hidden);
  state.cache.length = region;
  return state;
}

at::Tensor leaf_mask(const BatchState& state, std::int64_t rows) {
  const std::int64_t columns = state.cache.length + rows;
  at::Tensor mask =
      at::full({state.items(), rows, columns}, -std::numeric_limits<float>::infinity());
  float* cell = mask.data_ptr<float>();
  for (const std::int64_t length : state.lengths) {
    for (std::int64_t row = 0; row < rows; ++row, cell += columns) {
      std::fill(cell, cell + length, 0.0F);
      std::fill(cell + state.region, cell + state.cache.length, 0.0F);
      cell[state.cache.length + row] = 0.0F;
    }
  }
  return mask;
}

at::Tensor next_positions(const BatchState& state, std::int64_t rows) {
  at::Tensor positions = at::empty({state.items(), rows}, at::kLong);
  auto* out = positions.data_ptr<std::int64_t>();
  for (const std::int64_t length : state.lengths) {
    out = std::fill_n(out, rows, length + state.steps());
  }
  return positions;
}

}  // namespace prefgrid
