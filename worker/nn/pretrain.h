// The `pretrain` job: a tokenizer and a language model from a data set's training corpus, alone.
// Deterministic in (data set, options) on one numerics profile. Single-threaded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/job.h"
#include "common/result.h"
#include "common/value.h"
#include "experiments/datasets/dataset.h"
#include "worker/nn/tokenizer.h"
#include "worker/nn/transformer.h"

namespace prefgrid {

// Defaults: experiments/catalog/model_fields.h, which says what each one means.
struct PretrainOptions {
  ModelConfig shape;  // its vocab_size is the most that the tokenizer may have
  std::int64_t tokens = 0;
  double learning_rate = 0;
  std::int64_t batch_tokens = 0;
  double warmup_share = 0;
  double weight_decay = 0;
  double clip_norm = 0;
  std::int64_t max_prompt_tokens = 0;
  std::uint64_t seed = 0;
};
// From a job's parameters and the catalogue's defaults. Errors: fields that do not fit together.
Result<PretrainOptions> pretrain_options(const ValueMap& parameters);

struct PretrainOutcome {
  Transformer model;
  Tokenizer tokenizer;
  // Mean nats per token of all users' completions, end token included, given their prompts; NaN
  // where the split has none. Completions are those of completion items, else the chosen sides.
  double valid_loss_nats = 0;
  double test_loss_nats = 0;
  double unigram_loss_nats = 0;  // the test completions under the corpus' token frequencies
  std::vector<CurvePoint> curve;
  std::uint64_t skipped_items = 0;  // longer than the context
};

// step, steps, training loss in nats per token.
using PretrainProgress = std::function<void(std::uint64_t, std::uint64_t, std::optional<double>)>;

// Errors: nothing to train on; a loss that is no number.
Result<PretrainOutcome> pretrain(const Dataset& dataset, const PretrainOptions& options,
                                 const PretrainProgress& progress);

// Mean nats per token of the split's completions, as above.
double completion_loss(const Transformer& model, const Tokenizer& tokenizer, const Dataset& dataset,
                       Split split, std::int64_t max_prompt_tokens);

}  // namespace prefgrid
