// A Llama-style decoder: RMSNorm, RoPE, grouped-query attention, SwiGLU, tied or untied head.
// Two ways through the same weights:
//   train_forward   a batch of equal-length rows, causal, with autograd;
//   extend          new rows over a key/value cache, each attending to what a mask says — the
//                   prompt, a candidate tree, or T·(1+k) packed rows at once (docs/engine.md).
// Single-threaded use. fp32 on the CPU.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "common/result.h"
#include "worker/nn/model_config.h"
#include "worker/nn/safetensors.h"
#include "worker/nn/torch.h"
#include "worker/nn/transformer_layer.h"

namespace prefgrid {

// Keys (after RoPE) and values of the rows that later rows may attend to, for `batch` independent
// sequences of equal capacity. Rows beyond a sequence's own length are masked by the caller.
struct KvCache {
  std::vector<at::Tensor> keys;    // per layer: [batch, kv_heads, capacity, head_dim]
  std::vector<at::Tensor> values;  // per layer: the same
  std::int64_t length = 0;         // rows in use; new ones are written from here

  std::int64_t capacity() const { return keys.empty() ? 0 : keys[0].size(2); }
};

class Transformer {
 public:
  // Fresh weights: normal, deviation 0.02 (residual projections / sqrt(2·layers)), from `seed`.
  static Transformer initialise(const ModelConfig& config, std::uint64_t seed);
  // A Hugging Face folder: config.json and model.safetensors. Errors name file and tensor.
  static Result<Transformer> load(const std::filesystem::path& folder);
  Result<void> save(const std::filesystem::path& folder) const;

  const ModelConfig& config() const { return config_; }
  // Name -> parameter, with Hugging Face's names; the tensors are the live ones.
  const TensorMap& parameters() const { return parameters_; }
  void set_requires_grad(bool on);
  // [vocab_size, d_model]: the embeddings themselves where they are tied.
  const at::Tensor& head() const { return head_; }

  // tokens: [batch, time] int64. segments: [batch, time] int64 or undefined: a row attends only to
  // earlier rows of its own segment (packed documents), and positions restart with each segment.
  // A segment is a run of equal numbers; an equal number further on is another segment.
  // branches: the same for continuations of one text: a segment's first run is its trunk; each
  // later run attends to the trunk and to itself alone, and its positions go on from the trunk's
  // end. Returns hidden states after the final norm: [batch, time, d_model].
  at::Tensor train_forward(const at::Tensor& tokens, const at::Tensor& segments = {},
                           const at::Tensor& branches = {}) const;

  KvCache make_cache(std::int64_t batch, std::int64_t capacity) const;

  // tokens, positions: [batch, rows] int64. mask: [batch, rows, cache.length + rows] fp32, added to
  // the scores (0 or -inf), or undefined: causal over the cache and the new rows.
  // keep: how many of the new rows (the first ones) enter the cache; cache.length grows by it.
  // Returns hidden states after the final norm: [batch, rows, d_model]. Inference only.
  at::Tensor extend(const at::Tensor& tokens, const at::Tensor& positions, const at::Tensor& mask,
                    KvCache& cache, std::int64_t keep) const;

  // hidden: [..., d_model] -> logits [..., vocab_size].
  at::Tensor logits(const at::Tensor& hidden) const;

 private:
  explicit Transformer(const ModelConfig& config);  // weights not set yet

  ModelConfig config_;
  TensorMap parameters_;
  std::vector<LayerWeights> layers_;  // the same memory as parameters_, fused
  at::Tensor embedding_;              // parameters_ too, by short names
  at::Tensor final_norm_;
  at::Tensor head_;
  at::Tensor rope_table_;
};

}  // namespace prefgrid
