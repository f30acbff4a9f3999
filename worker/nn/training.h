// What training a model from scratch and fine-tuning one share: the loss over tokens, AdamW with a
// global-norm clip, the schedule. Deterministic: same inputs, same bits. Single-threaded use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/nn/transformer.h"

namespace prefgrid {

// libtorch and the allocator for small models on a CPU: one intra-op thread, and freed memory is
// kept (large tensors otherwise fault their pages at every allocation). Call it once, at start.
void prepare_process();

// Σ weight·nll / normaliser over rows, nll = −log softmax(hidden · headᵀ)[target]: the head's
// product and the cross entropy in one, with autograd. Rows of weight 0 are not computed.
// hidden: [..., d_model]; targets: int64; weights: fp32; both with one element a row.
at::Tensor token_loss(const Transformer& model, const at::Tensor& hidden, const at::Tensor& targets,
                      const at::Tensor& weights, double normaliser);

// Warm-up from 0 to 1, then half a cosine down to `floor`. step counts from 0.
double cosine_schedule(std::int64_t step, std::int64_t steps, double warmup_share,
                       double floor = 0.05);

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double clip_norm = 0;  // 0: no clip
};

struct TrainedParameter {
  std::string name;
  at::Tensor value;  // live, contiguous, fp32, requires_grad
  bool decays = true;
};
// All of a model's; matrices decay, norms and embeddings do not.
std::vector<TrainedParameter> trained_parameters(const Transformer& model);

// All that a resumed run needs besides the weights: a checkpoint is this and the parameters.
struct TrainState {
  std::int64_t step = 0;
  std::uint64_t generator_position = 0;  // of the stream that orders the data
  TensorMap means;                       // AdamW's moments, by parameter name
  TensorMap squares;
};

class AdamW {
 public:
  AdamW(std::vector<TrainedParameter> parameters, const AdamOptions& options);

  // One update at this learning rate from the parameters' .grad, which it clears; a parameter
  // without one stays. Returns the gradient's global norm before clipping. A norm that is no number
  // leaves weights and moments alone.
  double step(double learning_rate);

  const TrainState& state() const { return state_; }
  TrainState& state() { return state_; }

 private:
  std::vector<TrainedParameter> parameters_;
  AdamOptions options_;
  TrainState state_;
};

}  // namespace prefgrid
