#include "experiments/methods/global_bt.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>

#include "common/random.h"
#include "common/text.h"
#include "experiments/methods/features.h"
#include "experiments/methods/pair_states.h"
#include "experiments/methods/prompts.h"
#include "worker/nn/training.h"

namespace prefgrid {
namespace {

std::vector<std::size_t> shuffled(std::size_t size, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  RandomStream stream(seed, "global_bt/order/" + std::to_string(epoch));
  for (std::size_t i = size; i > 1; --i) std::swap(order[i - 1], order[stream.below(i)]);
  return order;
}

// 3 % warm-up, then a cosine to zero.
double schedule(std::uint64_t step, std::uint64_t total) {
  return cosine_schedule(static_cast<std::int64_t>(step), static_cast<std::int64_t>(total), 0.03,
                         0);
}

Result<std::vector<PairTokens>> tokens_of(const Tokenizer& tokenizer, const Dataset& dataset,
                                          Split split, std::int64_t max_prompt_tokens,
                                          std::int64_t max_tokens) {
  std::vector<PairTokens> all;
  for (const std::uint32_t index : seen_pairs(dataset, split)) {
    PREFGRID_ASSIGN(PairTokens tokens,
                    pair_tokens(tokenizer, dataset.pairs[index], max_prompt_tokens, max_tokens));
    all.push_back(std::move(tokens));
  }
  return all;
}

double accuracy(const Transformer& backbone, const at::Tensor& head,
                const std::vector<PairTokens>& pairs) {
  const c10::InferenceMode inference;
  double hits = 0;
  for (const PairTokens& pair : pairs) {
    const at::Tensor rewards =
        at::mv(pair_states(backbone, pair.prompt, pair.chosen, pair.rejected), head);
    const float chosen = rewards.data_ptr<float>()[0];
    const float rejected = rewards.data_ptr<float>()[1];
    hits += chosen > rejected ? 1 : chosen == rejected ? 0.5 : 0;
  }
  return pairs.empty() ? 0 : hits / static_cast<double>(pairs.size());
}

}  // namespace

Result<PairTokens> pair_tokens(const Tokenizer& tokenizer, const PairItem& pair,
                               std::int64_t max_prompt_tokens, std::int64_t max_tokens) {
  PairTokens tokens{prompt_tokens(tokenizer, pair.prompt, max_prompt_tokens),
                    response_tokens(tokenizer, pair.chosen),
                    response_tokens(tokenizer, pair.rejected)};
  const auto room = max_tokens - static_cast<std::int64_t>(
                                     std::max(tokens.chosen.size(), tokens.rejected.size()));
  if (room < 1) {
    return invalid_input("pair " + quoted(pair.id) +
                         " has a response that does not fit the model's context of " +
                         std::to_string(max_tokens) + " tokens");
  }
  cut_start(tokens.prompt, room);
  return tokens;
}

at::Tensor bradley_terry_loss(const Transformer& backbone, const at::Tensor& head,
                              const std::vector<const PairTokens*>& batch) {
  // One row for the whole batch: a pair is a segment, its prompt the trunk, its sides the branches.
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> segments;
  std::vector<std::int64_t> branches;
  std::vector<std::int64_t> last[2];  // of the chosen sides, and of the rejected ones
  const auto append = [&](std::span<const TokenId> part, std::size_t pair, std::int64_t branch) {
    tokens.insert(tokens.end(), part.begin(), part.end());
    segments.resize(tokens.size(), static_cast<std::int64_t>(pair));
    branches.resize(tokens.size(), branch);
    return static_cast<std::int64_t>(tokens.size()) - 1;
  };
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::int64_t prompt_end = append(batch[i]->prompt, i, 0);
    for (const std::size_t side : {0U, 1U}) {
      const std::span<const TokenId> all = side == 0 ? batch[i]->chosen : batch[i]->rejected;
      const auto response = all.first(all.size() - 1);  // without EOS
      last[side].push_back(
          response.empty() ? prompt_end : append(response, i, static_cast<std::int64_t>(side) + 1));
    }
  }
  const auto row = [](const std::vector<std::int64_t>& values) {
    return at::tensor(values, at::kLong).unsqueeze(0);
  };
  const at::Tensor hidden = backbone.train_forward(row(tokens), row(segments), row(branches))[0];
  const auto rewards = [&](const std::vector<std::int64_t>& rows) {
    return at::mv(hidden.index_select(0, at::tensor(rows, at::kLong)), head);
  };
  return at::softplus(rewards(last[1]) - rewards(last[0])).mean();
}

Result<GlobalBtTraining> train_global_bt(
    Transformer& backbone, const Tokenizer& tokenizer, const Dataset& dataset,
    const GlobalBtOptions& options, std::uint64_t seed,
    const std::function<void(std::uint64_t, std::uint64_t, double)>& progress) {
  const std::int64_t context = backbone.config().max_tokens;
  PREFGRID_ASSIGN(const auto train,
                  tokens_of(tokenizer, dataset, Split::train, options.max_prompt_tokens, context));
  PREFGRID_ASSIGN(const auto valid,
                  tokens_of(tokenizer, dataset, Split::valid, options.max_prompt_tokens, context));
  if (train.empty()) return invalid_input("global_bt: no train pairs of seen users");
  const auto batch = std::min(static_cast<std::size_t>(options.batch), train.size());
  const std::size_t per_epoch = (train.size() + batch - 1) / batch;
  const std::uint64_t total = per_epoch * static_cast<std::uint64_t>(options.epochs);

  GlobalBtTraining training;
  training.head = at::zeros({backbone.config().d_model});
  training.head.set_requires_grad(true);
  backbone.set_requires_grad(true);
  std::vector<TrainedParameter> parameters = trained_parameters(backbone);
  parameters.push_back({"head", training.head, false});
  AdamOptions adam;
  adam.beta2 = 0.999;
  adam.weight_decay = options.weight_decay;
  adam.clip_norm = 1;
  AdamW optimiser(std::move(parameters), adam);
  std::uint64_t step = 0;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const std::vector<std::size_t> order = shuffled(train.size(), seed, epoch);
    double epoch_loss = 0;
    for (std::size_t first = 0; first < order.size(); first += batch) {
      std::vector<const PairTokens*> pairs;
      for (std::size_t i = first; i < std::min(first + batch, order.size()); ++i) {
        pairs.push_back(&train[order[i]]);
      }
      const at::Tensor loss = bradley_terry_loss(backbone, training.head, pairs);
      const double value = loss.item<float>();
      ++step;
      if (!std::isfinite(value)) {
        return Error{ErrorCode::internal, "global_bt: the loss is not finite at step " +
                                              std::to_string(step) + "; lower learning_rate"};
      }
      torch::autograd::backward({loss}, {});
      optimiser.step(options.learning_rate * schedule(step - 1, total));
      epoch_loss += value * static_cast<double>(pairs.size());
      training.curve.push_back({step, "train_loss_nats", value});
      progress(step, total, value);
    }
    training.train_loss_nats = epoch_loss / static_cast<double>(train.size());
  }
  backbone.set_requires_grad(false);
  training.head = training.head.detach();
  training.valid_accuracy = accuracy(backbone, training.head, valid);
  training.valid_pairs = valid.size();
  return training;
}

}  // namespace prefgrid
