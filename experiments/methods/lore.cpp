#include "experiments/methods/lore.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/random.h"
#include "experiments/methods/adam.h"

namespace prefgrid {
namespace {

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}
double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

std::span<float> cells(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// 1 / (users with pairs · pairs of the row's user): rows so weighted give the mean over users.
std::vector<double> row_weights(const LorePairs& pairs) {
  std::vector<double> count(static_cast<std::size_t>(pairs.users), 0);
  for (const std::int64_t user : pairs.user) count[static_cast<std::size_t>(user)] += 1;
  const auto users = static_cast<double>(
      std::count_if(count.begin(), count.end(), [](double n) { return n > 0; }));
  std::vector<double> weights;
  for (const std::int64_t user : pairs.user) {
    weights.push_back(1 / (users * count[static_cast<std::size_t>(user)]));
  }
  return weights;
}

// logit_i = projected_i · softmax(W_u(i)) / 100, [n]; projected = d·V, [n, B].
std::vector<double> row_logits(const LorePairs& pairs, const at::Tensor& projected,
                               const at::Tensor& simplex) {
  const auto rank = static_cast<std::size_t>(simplex.size(1));
  const std::span<const float> z = cells(projected);
  const std::span<const float> w = cells(simplex);
  std::vector<double> logits;
  for (std::size_t row = 0; row < pairs.user.size(); ++row) {
    const std::size_t user = static_cast<std::size_t>(pairs.user[row]) * rank;
    double sum = 0;
    for (std::size_t j = 0; j < rank; ++j)
      sum += static_cast<double>(z[row * rank + j]) * w[user + j];
    logits.push_back(sum / lore_divisor);
  }
  return logits;
}

at::Tensor random_normal(at::IntArrayRef shape, std::uint64_t seed, std::string_view purpose) {
  at::Tensor tensor = at::empty(shape);
  RandomStream stream(seed, purpose);
  for (float& value : cells(tensor)) value = static_cast<float>(stream.normal());
  return tensor;
}

}  // namespace

LoreGradient lore_gradient(const LorePairs& pairs, const LoreParameters& parameters) {
  c10::InferenceMode inference;
  const at::Tensor simplex = at::softmax(parameters.logits, 1).contiguous();
  const at::Tensor projected = pairs.differences.times(parameters.directions).contiguous();
  const std::vector<double> logits = row_logits(pairs, projected, simplex);
  const std::vector<double> weights = row_weights(pairs);
  const auto rank = static_cast<std::size_t>(simplex.size(1));

  LoreGradient gradient;
  at::Tensor by_row = at::empty_like(projected);  // ∂loss/∂projected, [n, B]
  at::Tensor by_simplex = at::zeros_like(simplex);
  const std::span<float> row_cells = cells(by_row);
  const std::span<float> simplex_cells = cells(by_simplex);
  const std::span<const float> z = cells(projected);
  const std::span<const float> w = cells(simplex);
  for (std::size_t row = 0; row < pairs.user.size(); ++row) {
    gradient.loss_nats += weights[row] * softplus(-logits[row]);
    const double slope = -weights[row] * logistic(-logits[row]) / lore_divisor;
    const std::size_t user = static_cast<std::size_t>(pairs.user[row]) * rank;
    for (std::size_t j = 0; j < rank; ++j) {
      row_cells[row * rank + j] = static_cast<float>(slope * w[user + j]);
      simplex_cells[user + j] += static_cast<float>(slope * z[row * rank + j]);
    }
  }
  gradient.directions = pairs.differences.transposed_times(by_row).contiguous();
  // Softmax backwards: w ∘ (g − Σ w g).
  gradient.logits =
      (simplex * (by_simplex - (simplex * by_simplex).sum(1, /*keepdim=*/true))).contiguous();
  return gradient;
}

LoreFit lore_fit(const LorePairs& pairs, const LoreParameters& parameters) {
  c10::InferenceMode inference;
  LoreFit fit;
  if (pairs.user.empty()) return fit;
  const at::Tensor simplex = at::softmax(parameters.logits, 1).contiguous();
  const at::Tensor projected = pairs.differences.times(parameters.directions).contiguous();
  const std::vector<double> logits = row_logits(pairs, projected, simplex);
  const std::vector<double> weights = row_weights(pairs);
  for (std::size_t row = 0; row < logits.size(); ++row) {
    fit.loss_nats += weights[row] * softplus(-logits[row]);
    fit.accuracy += weights[row] * (logits[row] > 0 ? 1 : logits[row] < 0 ? 0 : 0.5);
  }
  return fit;
}

Result<LoreTraining> train_lore(const LorePairs& train, const LorePairs& valid,
                                const LoreOptions& options, std::uint64_t seed,
                                const std::function<void(std::uint64_t, double)>& progress) {
  c10::InferenceMode inference;
  // Small dense steps early on, where a good step may be passed within ten.
  const auto is_checked = [](std::uint64_t step) { return step <= 50 || step % 10 == 0; };
  LoreParameters now = {
      random_normal({train.differences.dimensions(), options.rank}, seed, "lore/directions"),
      random_normal({train.users, options.rank}, seed, "lore/logits")};
  Adam<float> adam_directions(static_cast<std::size_t>(now.directions.numel()),
                              options.learning_rate);
  Adam<float> adam_logits(static_cast<std::size_t>(now.logits.numel()), options.learning_rate);
  const bool choose = options.choose_by_valid && !valid.user.empty();
  const auto steps = static_cast<std::uint64_t>(options.steps);

  LoreTraining best;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const LoreGradient gradient = lore_gradient(train, now);
    if (!std::isfinite(gradient.loss_nats)) {
      return Error{ErrorCode::internal, "lore: the loss is not finite at step " +
                                            std::to_string(step) +
                                            "; lower learning_rate or check the features"};
    }
    adam_directions.step(cells(now.directions), cells(gradient.directions));
    adam_logits.step(cells(now.logits), cells(gradient.logits));
    progress(step, gradient.loss_nats);
    if (!is_checked(step) && step != steps) continue;
    const LoreFit fit = lore_fit(valid, now);
    best.curve.push_back({step, "train_loss_nats", gradient.loss_nats});
    if (!valid.user.empty()) best.curve.push_back({step, "valid_loss_nats", fit.loss_nats});
    const bool first = best.chosen_step == 0;
    if (choose && !first && fit.loss_nats >= best.valid.loss_nats) continue;
    best.parameters = {now.directions.clone(), now.logits.clone()};
    best.chosen_step = step;
    best.valid = fit;
  }
  best.train = lore_fit(train, best.parameters);
  return best;
}

LoreAdaptation adapt_lore(const DifferenceMatrix& differences, const at::Tensor& directions,
                          double learning_rate, std::int64_t steps) {
  c10::InferenceMode inference;
  const LorePairs pairs = {DifferenceMatrix(differences.times(directions)),
                           std::vector<std::int64_t>(static_cast<std::size_t>(differences.rows())),
                           1};
  // d·V is a table of B columns: with the identity as directions only W_u is left to fit.
  LoreParameters parameters = {at::eye(directions.size(1)), at::zeros({1, directions.size(1)})};
  Adam<float> adam(static_cast<std::size_t>(directions.size(1)), learning_rate);
  for (std::int64_t step = 0; step < steps && !pairs.user.empty(); ++step) {
    adam.step(cells(parameters.logits), cells(lore_gradient(pairs, parameters).logits));
  }
  return {simplex_weights(parameters.logits[0]), lore_fit(pairs, parameters).loss_nats};
}

std::vector<float> simplex_weights(const at::Tensor& logits_row) {
  const at::Tensor simplex = at::softmax(logits_row, 0).contiguous();
  return {simplex.data_ptr<float>(), simplex.data_ptr<float>() + simplex.numel()};
}

LinearHead lore_head(const at::Tensor& directions, std::span<const float> weights, double scale) {
  PREFGRID_CHECK(directions.size(1) == static_cast<std::int64_t>(weights.size()),
                 "one weight per direction");
  const at::Tensor v = directions.contiguous();
  const std::span<const float> all = cells(v);
  LinearHead head;
  for (std::size_t row = 0; row < static_cast<std::size_t>(v.size(0)); ++row) {
    double sum = 0;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      sum += static_cast<double>(all[row * weights.size() + j]) * weights[j];
    }
    head.direction.push_back(static_cast<float>(sum * scale / lore_divisor));
  }
  return head;
}

}  // namespace prefgrid
