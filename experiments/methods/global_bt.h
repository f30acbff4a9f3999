// global_bt: one Bradley-Terry reward model for all users. The backbone is fine-tuned whole (its
// models have less than 10M parameters) with a scalar head v: r(x,y) = v·φ(x,y), φ the final hidden
// state at the last token before the end token; loss −log σ(r⁺ − r⁻). AdamW, cosine after 3 %
// warm-up, global gradient norm clipped to 1. The head starts at zero.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/job.h"
#include "common/result.h"
#include "experiments/datasets/dataset.h"
#include "worker/nn/tokenizer.h"
#include "worker/nn/transformer.h"

namespace prefgrid {

struct GlobalBtOptions {
  double learning_rate = 0;  // peak
  double weight_decay = 0;   // decoupled, of matrices
  std::int64_t batch = 0;    // pairs a step
  std::int64_t epochs = 0;
  std::int64_t max_prompt_tokens = 0;
};

// A pair as the backbone reads it: both responses end with the end token.
struct PairTokens {
  std::vector<TokenId> prompt;  // opens with the begin token
  std::vector<TokenId> chosen;
  std::vector<TokenId> rejected;
};
// Errors: a response that does not fit a context of `max_tokens`, naming the pair.
Result<PairTokens> pair_tokens(const Tokenizer& tokenizer, const PairItem& pair,
                               std::int64_t max_prompt_tokens, std::int64_t max_tokens);

// Mean of −log σ(r⁺ − r⁻) over a batch, recorded by autograd where gradients are on. head:
// [d_model].
at::Tensor bradley_terry_loss(const Transformer& backbone, const at::Tensor& head,
                              const std::vector<const PairTokens*>& batch);

struct GlobalBtTraining {
  at::Tensor head;             // v: [d_model]
  double train_loss_nats = 0;  // mean over the last epoch's pairs, as they were met
  double valid_accuracy = 0;   // pooled, ties one half; of no pairs: 0
  std::uint64_t valid_pairs = 0;
  std::vector<CurvePoint> curve;
};

// Fine-tunes `backbone` in place on the seen users' train pairs, in an order made from the seed.
// Errors: no pairs; a loss that is not finite.
Result<GlobalBtTraining> train_global_bt(
    Transformer& backbone, const Tokenizer& tokenizer, const Dataset& dataset,
    const GlobalBtOptions& options, std::uint64_t seed,
    const std::function<void(std::uint64_t, std::uint64_t, double)>& progress);

}  // namespace prefgrid
