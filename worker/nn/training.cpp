#include "worker/nn/training.h"

#include <ATen/Parallel.h>
#include <malloc.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <numbers>

#include "common/check.h"
#include "worker/nn/kernels.h"
#include "worker/nn/product.h"

namespace prefgrid {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The rows that count, gathered.
struct WeightedRows {
  at::Tensor hidden;             // [rows, d_model]
  std::vector<std::int64_t> at;  // where they stand in the caller's tensor
};

WeightedRows gather(const at::Tensor& hidden, const at::Tensor& weights) {
  const std::int64_t width = hidden.size(1);
  const float* weight = weights.data_ptr<float>();
  WeightedRows rows;
  for (std::int64_t row = 0; row < hidden.size(0); ++row) {
    if (weight[row] != 0) rows.at.push_back(row);
  }
  rows.hidden = at::empty({static_cast<std::int64_t>(rows.at.size()), width}, hidden.options());
  float* to = rows.hidden.data_ptr<float>();
  for (const std::int64_t row : rows.at) {
    std::memcpy(to, hidden.data_ptr<float>() + row * width, sizeof(float) * width);
    to += width;
  }
  return rows;
}

class TokenLoss : public torch::autograd::Function<TokenLoss> {
 public:
  // Saves the logits' gradient: softmax minus the target, times weight / normaliser.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& head, const at::Tensor& targets,
                            const at::Tensor& weights, double normaliser) {
    const WeightedRows rows = gather(hidden, weights);
    at::Tensor logits = plain_linear(rows.hidden, head);
    const std::int64_t vocab_size = head.size(0);
    double loss = 0;
    for (std::size_t i = 0; i < rows.at.size(); ++i) {
      const std::int64_t target = targets.data_ptr<std::int64_t>()[rows.at[i]];
      PREFGRID_CHECK(target >= 0 && target < vocab_size, "target " + std::to_string(target));
      const float weight = weights.data_ptr<float>()[rows.at[i]];
      float* row = logits.data_ptr<float>() + static_cast<std::int64_t>(i) * vocab_size;
      const float chosen = row[target];
      const float log_sum = kernels::softmax(row, vocab_size, 1.0F);
      loss += static_cast<double>(weight) * (static_cast<double>(log_sum) - chosen);
      row[target] -= 1.0F;
      kernels::scale(static_cast<float>(weight / normaliser), vocab_size, row);
    }
    const auto count = static_cast<std::int64_t>(rows.at.size());
    at::Tensor places = at::empty({count}, at::kLong);
    std::copy(rows.at.begin(), rows.at.end(), places.data_ptr<std::int64_t>());
    context->save_for_backward({logits, rows.hidden, head, places});
    context->saved_data["rows"] = hidden.size(0);
    return at::scalar_tensor(loss / normaliser, at::kFloat);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& dlogits = saved[0];
    const at::Tensor& hidden = saved[1];
    const at::Tensor& head = saved[2];
    const float slope = gradients[0].item<float>();
    const std::int64_t width = head.size(1);
    const std::int64_t vocab_size = head.size(0);
    const std::int64_t count = dlogits.size(0);
    at::Tensor dhead = at::zeros_like(head);
    multiply({true, false, vocab_size, width, count, slope}, dlogits.data_ptr<float>(), vocab_size,
             hidden.data_ptr<float>(), width, dhead.data_ptr<float>(), width);
    const at::Tensor dgathered = at::empty_like(hidden);
    multiply({false, false, count, width, vocab_size, slope}, dlogits.data_ptr<float>(), vocab_size,
             head.data_ptr<float>(), width, dgathered.data_ptr<float>(), width);
    at::Tensor dhidden = at::zeros({context->saved_data["rows"].toInt(), width}, hidden.options());
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(dhidden.data_ptr<float>() + saved[3].data_ptr<std::int64_t>()[i] * width,
                  dgathered.data_ptr<float>() + i * width, sizeof(float) * width);
    }
    return {dhidden, dhead, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

void prepare_process() {
  at::set_num_threads(1);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

at::Tensor token_loss(const Transformer& model, const at::Tensor& hidden, const at::Tensor& targets,
                      const at::Tensor& weights, double normaliser) {
  const at::Tensor rows = hidden.reshape({-1, model.config().d_model}).contiguous();
  const at::Tensor flat_targets = targets.reshape({-1}).contiguous();
  const at::Tensor flat_weights = weights.reshape({-1}).contiguous();
  PREFGRID_CHECK(flat_targets.numel() == rows.size(0) && flat_weights.numel() == rows.size(0),
                 "one target and one weight a row are needed");
  return TokenLoss::apply(rows, model.head(), flat_targets, flat_weights, normaliser);
}

double cosine_schedule(std::int64_t step, std::int64_t steps, double warmup_share, double floor) {
  const double warmup = warmup_share * static_cast<double>(steps);
  const double now = static_cast<double>(step) + 1;
  if (now < warmup) return now / warmup;
  const double rest = static_cast<double>(steps) - warmup;
  const double done = rest > 0 ? std::min(1.0, (now - warmup) / rest) : 1.0;
  return floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

std::vector<TrainedParameter> trained_parameters(const Transformer& model) {
  std::vector<TrainedParameter> parameters;
  for (const auto& [name, value] : model.parameters()) {
    const bool decays = value.dim() == 2 && name != "model.embed_tokens.weight";
    parameters.push_back({name, value, decays});
  }
  return parameters;
}

AdamW::AdamW(std::vector<TrainedParameter> parameters, const AdamOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const TrainedParameter& parameter : parameters_) {
    PREFGRID_CHECK(parameter.value.is_contiguous() && parameter.value.scalar_type() == at::kFloat,
                   parameter.name);
    const at::Tensor zero = at::zeros(parameter.value.sizes(), at::kFloat);
    PREFGRID_CHECK(state_.means.emplace(parameter.name, zero).second, parameter.name);
    state_.squares.emplace(parameter.name, zero.clone());
  }
}

double AdamW::step(double learning_rate) {
  const at::NoGradGuard no_gradients;
  double total = 0;
  for (TrainedParameter& parameter : parameters_) {
    at::Tensor& gradient = parameter.value.mutable_grad();
    if (!gradient.defined()) continue;
    if (!gradient.is_contiguous()) gradient = gradient.contiguous();
    total += kernels::sum_of_squares(gradient.data_ptr<float>(), gradient.numel());
  }
  const double norm = std::sqrt(total);
  const bool usable = std::isfinite(norm);
  kernels::AdamStep update;
  if (usable) {
    const auto count = static_cast<double>(++state_.step);
    const bool clips = options_.clip_norm > 0 && norm > options_.clip_norm;
    update.rate = static_cast<float>(learning_rate);
    update.beta1 = static_cast<float>(options_.beta1);
    update.beta2 = static_cast<float>(options_.beta2);
    update.epsilon = static_cast<float>(options_.epsilon);
    update.correction1 = static_cast<float>(1 - std::pow(options_.beta1, count));
    update.correction2 = static_cast<float>(1 - std::pow(options_.beta2, count));
    update.gradient_scale = clips ? static_cast<float>(options_.clip_norm / norm) : 1.0F;
  }
  for (TrainedParameter& parameter : parameters_) {
    at::Tensor& gradient = parameter.value.mutable_grad();
    if (usable && gradient.defined()) {
      update.decay = parameter.decays ? static_cast<float>(options_.weight_decay) : 0.0F;
      kernels::adamw(update, gradient.data_ptr<float>(), gradient.numel(),
                     parameter.value.data_ptr<float>(),
                     state_.means.at(parameter.name).data_ptr<float>(),
                     state_.squares.at(parameter.name).data_ptr<float>());
    }
    gradient = at::Tensor();
  }
  return norm;
}

}  // namespace prefgrid
