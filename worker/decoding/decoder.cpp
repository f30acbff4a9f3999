#include "worker/decoding/decoder.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "worker/decoding/batch_prompts.h"
#include "worker/decoding/candidate_sets.h"
#include "worker/decoding/prompt_state.h"

namespace prefgrid {
namespace {

// The k candidates of every item at the current step.
struct StepCandidates {
  std::vector<TokenId> tokens;   // [items, k]
  std::vector<float> log_probs;  // [items, k]
};

StepCandidates step_candidates(const Transformer& policy, const at::Tensor& hidden,
                               std::int64_t k) {
  const at::Tensor log_probs = at::log_softmax(policy.logits(hidden), -1).contiguous();
  const auto vocabulary = static_cast<std::size_t>(log_probs.size(1));
  const std::span<const float> all(log_probs.data_ptr<float>(),
                                   static_cast<std::size_t>(log_probs.numel()));
  StepCandidates step;
  for (std::size_t at = 0; at < all.size(); at += vocabulary) {
    const auto row = all.subspan(at, vocabulary);
    for (const TokenId token : top_candidates(row, k)) {
      step.tokens.push_back(token);
      step.log_probs.push_back(row[static_cast<std::size_t>(token)]);
    }
  }
  return step;
}

// What the two decoders share: the policy's cache and the responses so far.
class Batch {
 public:
  Batch(const Transformer& policy, std::span<const std::vector<TokenId>> prompts,
        const DecodeOptions& options)
      : policy_(policy),
        options_(options),
        state_(prefill_batch(policy, prompts, options.region, options.max_new_tokens)),
        hidden_(state_.last_hidden),
        responses_(prompts.size()) {}

  std::size_t items() const { return responses_.size(); }
  bool finished(std::size_t item) const { return responses_[item].ended; }
  bool all_finished() const {
    return std::all_of(responses_.begin(), responses_.end(),
                       [](const Decoded& response) { return response.ended; });
  }
  StepCandidates candidates() const { return step_candidates(policy_, hidden_, options_.k); }

  void append(std::span<const TokenId> chosen, bool more) {
    for (std::size_t item = 0; item < chosen.size(); ++item) {
      Decoded& response = responses_[item];
      if (response.ended) continue;
      response.ended = chosen[item] == options_.end_token;
      if (!response.ended) response.tokens.push_back(chosen[item]);
    }
    // Finished items ride along: the shapes stay, and so do their neighbours' bits.
    if (!more || all_finished()) return;
    const at::Tensor tokens = token_row(chosen).view({state_.items(), 1});
    hidden_ =
        policy_.extend(tokens, next_positions(state_, 1), leaf_mask(state_, 1), state_.cache, 1)
            .squeeze(1);
  }

  std::vector<Decoded> take() { return std::move(responses_); }

 private:
  const Transformer& policy_;
  const DecodeOptions& options_;
  BatchState state_;
  at::Tensor hidden_;  // [items, d_model], at the last token of each response
  std::vector<Decoded> responses_;
};

}  // namespace

Result<std::vector<Decoded>> decode_guided(const Transformer& policy,
                                           std::span<const std::vector<TokenId>> prompts,
                                           const DecodeOptions& options, CandidateReward& reward,
                                           const std::function<void(std::int64_t)>& progress) {
  c10::InferenceMode inference;
  Batch batch(policy, prompts, options);
  for (std::int64_t step = 0; step < options.max_new_tokens && !batch.all_finished(); ++step) {
    const StepCandidates candidates = batch.candidates();
    const std::vector<float> rewards = reward.score(candidates.tokens);
    const std::size_t k = candidates.tokens.size() / batch.items();
    std::vector<std::int32_t> chosen(batch.items(), 0);
    std::vector<TokenId> tokens(batch.items());
    for (std::size_t item = 0; item < batch.items(); ++item) {
      double best = 0;
      for (std::size_t j = 0; j < k && !batch.finished(item); ++j) {
        const float r = rewards[item * k + j];
        if (!std::isfinite(r)) {
          return Error{ErrorCode::internal, "the reward of item " + std::to_string(item) +
                                                " at step " + std::to_string(step) + " is " +
                                                std::to_string(r) + ": the reward model diverged"};
        }
        const double score = candidates.log_probs[item * k + j] + options.weight * r;
        if (j > 0 && score <= best) continue;
        best = score;
        chosen[item] = static_cast<std::int32_t>(j);
      }
      tokens[item] = candidates.tokens[item * k + static_cast<std::size_t>(chosen[item])];
    }
    const bool more = step + 1 < options.max_new_tokens;
    batch.append(tokens, more);
    if (more && !batch.all_finished()) reward.choose(chosen);
    progress(step + 1);
  }
  return batch.take();
}

std::vector<Decoded> decode_greedy(const Transformer& policy,
                                   std::span<const std::vector<TokenId>> prompts,
                                   const DecodeOptions& options,
                                   const std::function<void(std::int64_t)>& progress) {
  c10::InferenceMode inference;
  DecodeOptions one = options;
  one.k = 1;
  Batch batch(policy, prompts, one);
  for (std::int64_t step = 0; step < one.max_new_tokens && !batch.all_finished(); ++step) {
    batch.append(batch.candidates().tokens, step + 1 < one.max_new_tokens);
    progress(step + 1);
  }
  return batch.take();
}

}  // namespace prefgrid
