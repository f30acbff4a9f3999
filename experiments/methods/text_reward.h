// Rewards on the text itself: hashed bags of words of the response so far, no language model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/methods/sparse_rows.h"
#include "worker/decoding/candidate_sets.h"
#include "worker/decoding/reward.h"
#include "worker/nn/tokenizer.h"

namespace prefgrid {

// Appends φ(text), a bag of words in `rows.dimensions` buckets.
void append_bag(SparseRows& rows, std::string_view text);

// φ of every candidate of a response's sets and, last, of the real token: [T·(k + 1), dimensions].
// The text of candidate v at t is that of y<t∘v; the end token adds nothing.
SparseRows candidate_texts(const Tokenizer& tokenizer, std::span<const TokenId> response,
                           const CandidateSets& sets, std::int64_t dimensions);

// For guided decoding. Borrows the tokenizer.
class TextReward : public CandidateReward {
 public:
  TextReward(const Tokenizer& tokenizer, LinearHead head, std::size_t items);

  std::vector<float> score(std::span<const TokenId> candidates) override;
  void choose(std::span<const std::int32_t> chosen) override;

 private:
  const Tokenizer& tokenizer_;
  LinearHead head_;
  std::vector<std::string> texts_;  // per item, so far
  std::vector<TokenId> candidates_;
};

}  // namespace prefgrid
