#include "experiments/methods/text_reward.h"

#include <utility>

#include "experiments/metrics/bow_features.h"

namespace prefgrid {

void append_bag(SparseRows& rows, std::string_view text) {
  for (const SparseFeature& feature :
       bow_features(text, static_cast<std::uint32_t>(rows.dimensions))) {
    rows.columns.push_back(static_cast<std::int32_t>(feature.index));
    rows.values.push_back(feature.value);
  }
  rows.offsets.push_back(static_cast<std::int64_t>(rows.columns.size()));
}

SparseRows candidate_texts(const Tokenizer& tokenizer, std::span<const TokenId> response,
                           const CandidateSets& sets, std::int64_t dimensions) {
  SparseRows rows;
  rows.dimensions = dimensions;
  std::string text;
  for (std::size_t t = 0; t < response.size(); ++t) {
    const std::size_t length = text.size();
    const auto append = [&](TokenId token) {
      text += tokenizer.bytes(token);  // "" of the end token
      append_bag(rows, text);
      text.resize(length);
    };
    for (std::size_t j = 0; j < static_cast<std::size_t>(sets.k); ++j) {
      append(sets.tokens[t * static_cast<std::size_t>(sets.k) + j]);
    }
    append(response[t]);
    text += tokenizer.bytes(response[t]);
  }
  return rows;
}

TextReward::TextReward(const Tokenizer& tokenizer, LinearHead head, std::size_t items)
    : tokenizer_(tokenizer), head_(std::move(head)), texts_(items) {}

std::vector<float> TextReward::score(std::span<const TokenId> candidates) {
  candidates_.assign(candidates.begin(), candidates.end());
  const std::size_t k = candidates.size() / texts_.size();
  SparseRows rows;
  rows.dimensions = static_cast<std::int64_t>(head_.direction.size());
  std::vector<float> rewards;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    append_bag(rows, texts_[i / k] + std::string(tokenizer_.bytes(candidates[i])));
    rewards.push_back(static_cast<float>(rows.dot(rows.rows() - 1, head_.direction)));
  }
  return rewards;
}

void TextReward::choose(std::span<const std::int32_t> chosen) {
  const std::size_t k = candidates_.size() / texts_.size();
  for (std::size_t item = 0; item < texts_.size(); ++item) {
    texts_[item] +=
        tokenizer_.bytes(candidates_[item * k + static_cast<std::size_t>(chosen[item])]);
  }
}

}  // namespace prefgrid
