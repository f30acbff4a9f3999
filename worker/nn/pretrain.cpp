#include "worker/nn/pretrain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "common/random.h"
#include "experiments/catalog/model_fields.h"
#include "worker/nn/pretrain_rows.h"
#include "worker/nn/training.h"

namespace prefgrid {
namespace {

// A choice that has not been tuned: prompts teach the language, completions the task.
constexpr float prompt_weight = 0.3F;
constexpr std::uint64_t curve_points = 50;

struct Texts {
  std::vector<std::pair<std::string_view, std::string_view>> items;  // prompt, completion
};

Texts held_out(const Dataset& dataset, Split split) {
  Texts texts;
  for (const CompletionItem& item : dataset.completions) {
    if (item.split == split) texts.items.emplace_back(item.prompt, item.completion);
  }
  if (!dataset.completions.empty()) return texts;
  for (const PairItem& item : dataset.pairs) {
    if (item.split == split) texts.items.emplace_back(item.prompt, item.chosen);
  }
  return texts;
}

struct RowTensors {
  at::Tensor inputs;
  at::Tensor targets;
  at::Tensor segments;
  at::Tensor weights;
  double total = 0;  // of the weights
};
RowTensors to_tensors(TokenRow& row) {
  const auto length = static_cast<std::int64_t>(row.inputs.size());
  const auto wrap = [length](std::vector<std::int64_t>& values) {
    return at::from_blob(values.data(), {1, length}, at::kLong).clone();
  };
  RowTensors tensors{wrap(row.inputs), wrap(row.targets), wrap(row.segments),
                     at::from_blob(row.weights.data(), {1, length}, at::kFloat).clone()};
  for (const float weight : row.weights) tensors.total += weight;
  return tensors;
}

Result<Tokenizer> train_tokenizer(const std::vector<TrainingText>& corpus,
                                  std::int64_t vocab_size) {
  std::vector<std::string> texts;
  for (const TrainingText& text : corpus) {
    texts.push_back(text.prompt);
    texts.push_back(text.completion);
  }
  return Tokenizer::train(texts, vocab_size);
}

struct Corpus {
  std::vector<std::vector<TokenItem>> authors;
  std::uint64_t skipped = 0;
};
Corpus tokenise(const std::vector<TrainingText>& texts, const Tokenizer& tokenizer,
                const PretrainOptions& options) {
  Corpus corpus;
  const std::string* author = nullptr;
  for (const TrainingText& text : texts) {
    if (author == nullptr || *author != text.author) corpus.authors.emplace_back();
    author = &text.author;
    TokenItem item = token_item(tokenizer, text.prompt, text.completion, options.max_prompt_tokens);
    if (static_cast<std::int64_t>(item.tokens.size()) - 1 > options.shape.max_tokens) {
      ++corpus.skipped;
    } else {
      corpus.authors.back().push_back(std::move(item));
    }
  }
  return corpus;
}

// Rows without end: pass after pass, each packed anew.
class RowSource {
 public:
  RowSource(const Corpus& corpus, const PretrainOptions& options)
      : corpus_(corpus),
        pack_{options.shape.max_tokens, prompt_weight},
        random_(options.seed, "pretrain/order") {}

  TokenRow& next() {
    if (at_ == rows_.size()) {
      rows_ = pack_epoch(corpus_.authors, pack_, random_);
      at_ = 0;
      PREFGRID_CHECK(!rows_.empty(), "an empty corpus");
    }
    return rows_[at_++];
  }
  std::uint64_t position() const { return random_.position(); }

 private:
  const Corpus& corpus_;
  PackOptions pack_;
  RandomStream random_;
  std::vector<TokenRow> rows_;
  std::size_t at_ = 0;
};

// Gradients of one batch, row by row: a row's activations stay in the processor's cache.
double accumulate_gradients(const Transformer& model, RowSource& source, std::int64_t rows) {
  std::vector<RowTensors> batch;
  double total = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    batch.push_back(to_tensors(source.next()));
    total += batch.back().total;
  }
  double loss = 0;
  for (const RowTensors& row : batch) {
    const at::Tensor hidden = model.train_forward(row.inputs, row.segments);
    const at::Tensor part = token_loss(model, hidden, row.targets, row.weights, total);
    part.backward();
    loss += part.item<double>();
  }
  return loss;
}

Result<std::vector<CurvePoint>> train(Transformer& model, const Corpus& corpus,
                                      const PretrainOptions& options,
                                      const PretrainProgress& progress) {
  const std::int64_t row_tokens = options.shape.max_tokens;
  const std::int64_t rows = std::max<std::int64_t>(1, options.batch_tokens / row_tokens);
  const std::int64_t steps = std::max<std::int64_t>(1, options.tokens / (rows * row_tokens));
  AdamOptions adam;
  adam.weight_decay = options.weight_decay;
  adam.clip_norm = options.clip_norm;
  model.set_requires_grad(true);
  AdamW optimiser(trained_parameters(model), adam);
  RowSource source(corpus, options);
  std::vector<CurvePoint> curve;
  const std::int64_t every =
      std::max<std::int64_t>(1, steps / static_cast<std::int64_t>(curve_points));
  for (std::int64_t step = 0; step < steps; ++step) {
    const double loss = accumulate_gradients(model, source, rows);
    const double rate = cosine_schedule(step, steps, options.warmup_share);
    const double norm = optimiser.step(options.learning_rate * rate);
    optimiser.state().generator_position = source.position();
    if (!std::isfinite(loss) || !std::isfinite(norm)) {
      return Error{ErrorCode::internal,
                   "the loss is no number at step " + std::to_string(step + 1) + " of " +
                       std::to_string(steps) + ": lower learning_rate or clip_norm"};
    }
    const auto done = static_cast<std::uint64_t>(step) + 1;
    if (step % every == 0 || step + 1 == steps) curve.push_back({done, "train_loss_nats", loss});
    if (progress) progress(done, static_cast<std::uint64_t>(steps), loss);
  }
  model.set_requires_grad(false);
  return curve;
}

double unigram_loss(const Corpus& corpus, const Tokenizer& tokenizer, const Dataset& dataset) {
  std::vector<double> counts(static_cast<std::size_t>(tokenizer.vocab_size()), 1.0);
  double total = static_cast<double>(counts.size());
  for (const std::vector<TokenItem>& items : corpus.authors) {
    for (const TokenItem& item : items) {
      for (std::size_t at = 1; at < item.tokens.size(); ++at) {
        counts[static_cast<std::size_t>(item.tokens[at])] += 1;
        total += 1;
      }
    }
  }
  double loss = 0;
  double tokens = 0;
  for (const auto& [prompt, completion] : held_out(dataset, Split::test).items) {
    const TokenItem item = token_item(tokenizer, "", completion, 0);
    for (std::size_t at = item.completion_at; at < item.tokens.size(); ++at) {
      loss -= std::log(counts[static_cast<std::size_t>(item.tokens[at])] / total);
      tokens += 1;
    }
  }
  return loss / tokens;  // 0 / 0: NaN
}

}  // namespace

double completion_loss(const Transformer& model, const Tokenizer& tokenizer, const Dataset& dataset,
                       Split split, std::int64_t max_prompt_tokens) {
  const at::NoGradGuard no_gradients;
  RowPacker packer({model.config().max_tokens, 0.0F});
  for (const auto& [prompt, completion] : held_out(dataset, split).items) {
    packer.add(token_item(tokenizer, prompt, completion, max_prompt_tokens), true);
  }
  double loss = 0;
  double tokens = 0;
  for (TokenRow& row : packer.finish()) {
    const RowTensors tensors = to_tensors(row);
    const at::Tensor hidden = model.train_forward(tensors.inputs, tensors.segments);
    loss += token_loss(model, hidden, tensors.targets, tensors.weights, 1.0).item<double>();
    tokens += tensors.total;
  }
  return loss / tokens;
}

Result<PretrainOptions> pretrain_options(const ValueMap& parameters) {
  const std::vector<Field> fields = pretrain_fields();
  const auto integer = [&](std::string_view name) {
    return field_value(fields, parameters, name).integer();
  };
  const auto real = [&](std::string_view name) {
    return field_value(fields, parameters, name).real();
  };
  PretrainOptions options;
  ModelConfig& shape = options.shape;
  shape.layers = integer("layers");
  shape.d_model = integer("d_model");
  shape.heads = integer("heads");
  shape.kv_heads = integer("kv_heads");
  shape.d_ff = integer("d_ff");
  shape.vocab_size = integer("vocab_size");
  shape.max_tokens = integer("max_tokens");
  options.tokens = integer("tokens");
  options.learning_rate = real("learning_rate");
  options.batch_tokens = integer("batch_tokens");
  options.warmup_share = real("warmup_share");
  options.weight_decay = real("weight_decay");
  options.clip_norm = real("clip_norm");
  options.max_prompt_tokens = integer("max_prompt_tokens");
  options.seed = static_cast<std::uint64_t>(integer("pretrain_seed"));
  if (shape.d_model % shape.heads != 0 || shape.d_model / shape.heads % 2 != 0) {
    return invalid_input("d_model (" + std::to_string(shape.d_model) +
                         ") must be an even multiple of heads (" + std::to_string(shape.heads) +
                         ")");
  }
  if (shape.heads % shape.kv_heads != 0) {
    return invalid_input("kv_heads (" + std::to_string(shape.kv_heads) + ") must divide heads (" +
                         std::to_string(shape.heads) + ")");
  }
  shape.head_dim = shape.d_model / shape.heads;
  return options;
}

Result<PretrainOutcome> pretrain(const Dataset& dataset, const PretrainOptions& options,
                                 const PretrainProgress& progress) {
  const std::vector<TrainingText> texts = training_corpus(dataset);
  PREFGRID_ASSIGN(Tokenizer tokenizer, train_tokenizer(texts, options.shape.vocab_size));
  const Corpus corpus = tokenise(texts, tokenizer, options);
  const bool empty = std::all_of(corpus.authors.begin(), corpus.authors.end(),
                                 [](const auto& items) { return items.empty(); });
  if (empty) {
    return invalid_input(
        "the data set has no text to train a model on: " + std::to_string(texts.size()) +
        " texts, " + std::to_string(corpus.skipped) + " of them longer than max_tokens");
  }
  ModelConfig shape = options.shape;
  shape.vocab_size = tokenizer.vocab_size();
  Transformer model = Transformer::initialise(shape, options.seed);
  PREFGRID_ASSIGN(std::vector<CurvePoint> curve, train(model, corpus, options, progress));
  const auto loss = [&](Split split) {
    return completion_loss(model, tokenizer, dataset, split, options.max_prompt_tokens);
  };
  const double valid = loss(Split::valid);
  const double test = loss(Split::test);
  curve.push_back({curve.back().step, "valid_loss_nats", valid});
  const double unigram = unigram_loss(corpus, tokenizer, dataset);
  return PretrainOutcome{std::move(model), std::move(tokenizer), valid,         test,
                         unigram,          std::move(curve),     corpus.skipped};
}

}  // namespace prefgrid
