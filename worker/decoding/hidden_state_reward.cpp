#include "worker/decoding/hidden_state_reward.h"

#include "worker/decoding/prompt_state.h"

namespace prefgrid {
namespace {

std::vector<float> to_vector(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  const float* data = flat.data_ptr<float>();
  return {data, data + flat.numel()};
}

}  // namespace

HiddenStateReward::HiddenStateReward(const Transformer& backbone, const LinearHead& head,
                                     std::span<const std::vector<TokenId>> prompts,
                                     std::int64_t region, std::int64_t max_new_tokens,
                                     std::int64_t k, TokenId end_token)
    : backbone_(backbone),
      direction_(at::tensor(at::ArrayRef<float>(head.direction))),
      k_(k),
      end_token_(end_token),
      state_(prefill_batch(backbone, prompts, region, max_new_tokens + k)) {
  prefix_rewards_ = to_vector(at::matmul(state_.last_hidden, direction_));
}

std::vector<float> HiddenStateReward::score(std::span<const TokenId> candidates) {
  c10::InferenceMode inference;
  const std::int64_t items = state_.items();
  PREFGRID_CHECK(static_cast<std::int64_t>(candidates.size()) == items * k_, "k changed");
  const at::Tensor tokens = token_row(candidates).view({items, k_});
  // All leaves enter the cache behind the prefix; `choose` keeps one and gives the rest back.
  const at::Tensor hidden =
      backbone_.extend(tokens, next_positions(state_, k_), leaf_mask(state_, k_), state_.cache, k_);
  state_.cache.length -= k_;
  leaf_rewards_ = to_vector(at::matmul(hidden, direction_));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i] != end_token_) continue;
    leaf_rewards_[i] = prefix_rewards_[i / static_cast<std::size_t>(k_)];
  }
  return leaf_rewards_;
}

void HiddenStateReward::choose(std::span<const std::int32_t> chosen) {
  c10::InferenceMode inference;
  const std::int64_t row = state_.cache.length;
  for (std::size_t item = 0; item < chosen.size(); ++item) {
    prefix_rewards_[item] =
        leaf_rewards_[item * static_cast<std::size_t>(k_) + static_cast<std::size_t>(chosen[item])];
    if (chosen[item] == 0) continue;  // it lies where it belongs
    const auto keep = [&](at::Tensor& cache) {
      const at::Tensor rows = cache[static_cast<std::int64_t>(item)];  // [kv_heads, capacity, dim]
      rows.select(1, row).copy_(rows.select(1, row + chosen[item]));
    };
    for (at::Tensor& keys : state_.cache.keys) keep(keys);
    for (at::Tensor& values : state_.cache.values) keep(values);
  }
  state_.cache.length = row + 1;
}

}  // namespace prefgrid
