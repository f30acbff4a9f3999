#include "worker/executor/jobs/item_scores.h"

#include <algorithm>
#include <cmath>

#include "common/text.h"
#include "experiments/methods/prompts.h"
#include "experiments/methods/text_reward.h"
#include "worker/decoding/packed_scoring.h"

namespace prefgrid {
namespace {

const std::string& prompt_text(const Dataset& dataset, const ItemRef& item) {
  return item.is_pair ? dataset.pairs[item.index].prompt : dataset.completions[item.index].prompt;
}

std::vector<std::string_view> side_texts(const Dataset& dataset, const ItemRef& item) {
  if (!item.is_pair) return {dataset.completions[item.index].completion};
  return {dataset.pairs[item.index].chosen, dataset.pairs[item.index].rejected};
}

std::span<const float> flat(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

std::uint64_t sets_bytes(const ItemSets& sets) {
  std::uint64_t bytes = 512;
  for (const CandidateSets& side : sets.sides) {
    bytes += side.tokens.size() * 8 + static_cast<std::uint64_t>(side.positions) * 16;
  }
  return bytes;
}

std::uint64_t features_bytes(const std::vector<FeatureRows>& sides) {
  std::uint64_t bytes = 512;
  for (const FeatureRows& side : sides) {
    const auto* sparse = std::get_if<SparseRows>(&side);
    bytes += sparse ? sparse->columns.size() * 8 + sparse->offsets.size() * 8
                    : static_cast<std::uint64_t>(std::get<at::Tensor>(side).numel()) * 4;
  }
  return bytes;
}

std::vector<ItemRef> first_of(std::span<const std::uint32_t> indices, bool pairs,
                              std::int64_t count) {
  std::vector<ItemRef> items;
  for (const std::uint32_t index : indices) {
    if (static_cast<std::int64_t>(items.size()) == count) break;
    items.push_back({pairs, index});
  }
  return items;
}

}  // namespace

std::vector<ItemRef> test_items(const Dataset& dataset, std::uint32_t user, bool pairs,
                                std::int64_t count) {
  const std::vector<std::uint32_t> all =
      pairs ? dataset.pairs_of(user, Split::test) : dataset.completions_of(user, Split::test);
  return first_of(all, pairs, count);
}

std::vector<ItemRef> given_items(const Dataset& dataset, std::uint32_t user, std::int64_t count) {
  const std::vector<std::uint32_t> pairs = given_pairs(dataset, user);
  if (!pairs.empty()) return first_of(pairs, true, count);
  return first_of(given_completions(dataset, user), false, count);
}

std::string ItemScorer::item_name(const ItemRef& item) const {
  return item.is_pair ? "pair " + quoted(dataset_.pairs[item.index].id)
                      : "completion " + quoted(dataset_.completions[item.index].id);
}

std::string ItemScorer::item_key(const ItemRef& item) const {
  const JobInput& data = job_.context().inputs.at("dataset");
  return policy_.id + "/" + data.id + (item.is_pair ? "/p" : "/c") + std::to_string(item.index) +
         "/k" + std::to_string(k_) + "/m" + std::to_string(max_prompt_tokens_);
}

Result<std::vector<TokenId>> ItemScorer::prompt(const ItemRef& item, const ItemSets& sets,
                                                const LoadedModel& model,
                                                std::span<const TokenId> examples) const {
  std::vector<TokenId> tokens(examples.begin(), examples.end());
  const std::vector<TokenId> own =
      prompt_tokens(policy_.tokenizer, prompt_text(dataset_, item), max_prompt_tokens_);
  tokens.insert(tokens.end(), own.begin(), own.end());
  std::size_t longest = 0;
  for (const auto& response : sets.responses) longest = std::max(longest, response.size());
  const std::int64_t room =
      model.transformer.config().max_tokens - static_cast<std::int64_t>(longest);
  if (room < 1) {
    return invalid_input(item_name(item) + ": its response of " + std::to_string(longest) +
                         " tokens does not fit the model's context of " +
                         std::to_string(model.transformer.config().max_tokens));
  }
  cut_start(tokens, room);
  return tokens;
}

Result<ItemSets> ItemScorer::make_base_sets(const ItemRef& item) const {
  ItemSets sets;
  for (const std::string_view text : side_texts(dataset_, item)) {
    sets.responses.push_back(response_tokens(policy_.tokenizer, text));
  }
  PREFGRID_ASSIGN(const std::vector<TokenId> opening, prompt(item, sets, policy_, {}));
  PromptState state = prefill(policy_.transformer, opening, 0);
  for (const auto& response : sets.responses) {
    const at::Tensor log_probs = response_log_probs(policy_.transformer, state, response);
    sets.sides.push_back(make_candidate_sets(flat(log_probs), log_probs.size(1), response, k_));
  }
  return sets;
}

Result<std::shared_ptr<const ItemSets>> ItemScorer::base_sets(const ItemRef& item) const {
  return job_.resident().get<ItemSets>(
      "sets/" + item_key(item), [&] { return make_base_sets(item); }, sets_bytes);
}

Result<ItemSets> ItemScorer::sets_with_examples(const ItemRef& item, const ItemSets& base,
                                                std::span<const TokenId> examples) const {
  PREFGRID_ASSIGN(const std::vector<TokenId> opening, prompt(item, base, policy_, examples));
  PromptState state = prefill(policy_.transformer, opening, 0);
  ItemSets sets{base.responses, {}};
  for (std::size_t side = 0; side < base.sides.size(); ++side) {
    const auto& response = base.responses[side];
    const at::Tensor log_probs = response_log_probs(policy_.transformer, state, response);
    sets.sides.push_back(rescore(base.sides[side], flat(log_probs), log_probs.size(1), response));
  }
  return sets;
}

Result<std::vector<FeatureRows>> ItemScorer::make_features(const ItemRef& item,
                                                           const ItemSets& sets,
                                                           const JobReward& reward) const {
  std::vector<FeatureRows> features;
  if (reward.reads_text()) {
    const std::int64_t width = dimensions(reward.features->chosen);
    for (std::size_t side = 0; side < sets.sides.size(); ++side) {
      features.push_back(
          candidate_texts(policy_.tokenizer, sets.responses[side], sets.sides[side], width));
    }
    return features;
  }
  PREFGRID_ASSIGN(const auto backbone, job_.model(reward.backbone_input));
  if (backbone->tokenizer.fingerprint() != policy_.tokenizer.fingerprint()) {
    return invalid_input(
        "the policy and the reward's backbone have different vocabularies: one "
        "cannot guide the other token by token");
  }
  PREFGRID_ASSIGN(const std::vector<TokenId> opening, prompt(item, sets, *backbone, {}));
  std::size_t longest = 0;
  for (const auto& response : sets.responses) longest = std::max(longest, response.size());
  PromptState state =
      prefill(backbone->transformer, opening, packed_capacity(static_cast<std::int64_t>(longest)));
  for (std::size_t side = 0; side < sets.sides.size(); ++side) {
    const at::Tensor states = candidate_states(backbone->transformer, state, sets.responses[side],
                                               sets.sides[side], policy_.tokenizer.end_token());
    features.push_back(states.reshape({-1, states.size(2)}));
  }
  return features;
}

Result<std::vector<std::vector<float>>> ItemScorer::rewards(const ItemRef& item,
                                                            const ItemSets& sets,
                                                            const JobReward& reward) const {
  std::string source = "bow/" + std::to_string(dimensions(reward.features->chosen));
  if (!reward.reads_text()) {
    PREFGRID_ASSIGN(const JobInput* backbone, job_.input(reward.backbone_input));
    source = "states/" + backbone->id;
  }
  PREFGRID_ASSIGN(const auto features,
                  (job_.resident().get<std::vector<FeatureRows>>(
                      source + "/" + item_key(item),
                      [&] { return make_features(item, sets, reward); }, features_bytes)));
  std::vector<std::vector<float>> sides;
  for (const FeatureRows& side : *features) {
    PREFGRID_ASSIGN(std::vector<float> values, linear_rewards(side, reward.head));
    const auto bad = std::find_if(values.begin(), values.end(),
                                  [](float value) { return !std::isfinite(value); });
    if (bad != values.end()) {
      return Error{ErrorCode::internal, item_name(item) + ": the reward of a candidate is " +
                                            std::to_string(*bad) +
                                            "; the reward model's training diverged"};
    }
    sides.push_back(std::move(values));
  }
  return sides;
}

Result<double> ItemScorer::step_scale(std::span<const ItemRef> items,
                                      const JobReward& reward) const {
  double deviations = 0;
  double largest = 0;
  std::int64_t positions = 0;
  for (const ItemRef& item : items) {
    PREFGRID_ASSIGN(const auto sets, base_sets(item));
    PREFGRID_ASSIGN(const auto sides, rewards(item, *sets, reward));
    for (std::size_t side = 0; side < sides.size(); ++side) {
      deviations += sum_of_set_deviations(sets->sides[side], sides[side]);
      positions += sets->sides[side].positions;
      for (const float r : sides[side]) largest = std::max(largest, std::abs(double{r}));
    }
  }
  if (positions == 0) return invalid_input("reward_scale step: the user has no given items");
  const double scale = deviations / static_cast<double>(positions);
  // Below fp32's resolution of the rewards themselves it is rounding, not deviation.
  return scale > 1e-9 * largest ? scale : 1.0;
}

}  // namespace prefgrid
