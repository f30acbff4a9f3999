// LoRe: low-rank reward modelling. r_u(x,y) = φ(x,y)·V w_u / 100, w_u = softmax(W_u).
// Source: Bose et al. 2025 (arXiv 2504.14439) and its authors' code: V and W start normal, the loss
// is the mean over users of the mean over a user's pairs of −log σ(d·V w_u / 100), one Adam steps
// both, full batch. Ours (choice): the step with the lowest valid loss may be kept; a new user's
// W_u starts at zero, the uniform mixture.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/job.h"
#include "common/result.h"
#include "experiments/methods/features.h"
#include "worker/decoding/reward.h"
#include "worker/nn/torch.h"

namespace prefgrid {

inline constexpr double lore_divisor = 100;

// Pairs with the user (0..users-1) that each belongs to.
struct LorePairs {
  DifferenceMatrix differences;    // [n, F], scaled
  std::vector<std::int64_t> user;  // [n]
  std::int64_t users = 0;
};

struct LoreParameters {
  at::Tensor directions;  // V: [F, B]
  at::Tensor logits;      // W: [users, B]
};

struct LoreGradient {
  double loss_nats = 0;
  at::Tensor directions;  // [F, B]
  at::Tensor logits;      // [users, B]
};
LoreGradient lore_gradient(const LorePairs& pairs, const LoreParameters& parameters);

struct LoreFit {
  double loss_nats = 0;  // mean over users
  double accuracy = 0;   // mean over users, ties one half
};
LoreFit lore_fit(const LorePairs& pairs, const LoreParameters& parameters);

struct LoreOptions {
  std::int64_t rank = 5;
  double learning_rate = 0.5;
  std::int64_t steps = 1000;
  bool choose_by_valid = true;
};

struct LoreTraining {
  LoreParameters parameters;      // of the chosen step
  std::uint64_t chosen_step = 0;  // steps taken
  LoreFit train;
  LoreFit valid;  // zero without valid pairs
  std::vector<CurvePoint> curve;
};

// valid may hold no pairs: the last step is kept then. `progress(step, loss)` after every step.
Result<LoreTraining> train_lore(const LorePairs& train, const LorePairs& valid,
                                const LoreOptions& options, std::uint64_t seed,
                                const std::function<void(std::uint64_t, double)>& progress);

struct LoreAdaptation {
  std::vector<float> weights;  // [B], on the simplex
  double loss_nats = 0;
};
// V frozen: fits W_u on one user's pairs. Of no pairs: the uniform mixture.
LoreAdaptation adapt_lore(const DifferenceMatrix& differences, const at::Tensor& directions,
                          double learning_rate, std::int64_t steps);

// softmax(W_u)
std::vector<float> simplex_weights(const at::Tensor& logits_row);

// φ-space direction of r_u on unscaled features: scale · V w / 100.
LinearHead lore_head(const at::Tensor& directions, std::span<const float> weights, double scale);

}  // namespace prefgrid
