// One decoder layer with its gradient written by hand, and the final norm. Internal to worker/nn.
// Source: Touvron et al. 2023 (Llama); tests compare it with a naive one and with transformers.
#pragma once

#include "worker/nn/attention.h"
#include "worker/nn/torch.h"

namespace prefgrid {

// The parameters that a person sees (q_proj ...) are views of the fused tensors, row by row.
struct LayerWeights {
  at::Tensor qkv;             // [(heads + 2·kv_heads)·head_dim, d_model]
  at::Tensor output;          // [d_model, heads·head_dim]
  at::Tensor gate_up;         // [2·d_ff, d_model]
  at::Tensor down;            // [d_model, d_ff]
  at::Tensor attention_norm;  // [d_model]
  at::Tensor mlp_norm;        // [d_model]
  // What autograd sees, in this order: q, k, v, o, gate, up, down, attention norm, mlp norm.
  std::vector<at::Tensor> leaves;
};

// Of a forward pass over [batch·rows, d_model].
struct RowPlan {
  AttentionShape shape;
  float epsilon = 0;
  at::Tensor positions;   // [batch·rows] int64
  at::Tensor visible;     // [batch·rows, 3] int32, Visible of attention.h; undefined with a cache
  at::Tensor rope_table;  // [max_tokens, head_dim]
};

// x: [batch·rows, d_model] -> the same shape. Recorded by autograd where gradients are on.
at::Tensor layer_forward(const at::Tensor& x, const LayerWeights& weights, const RowPlan& plan);
// x / sqrt(mean x² + epsilon) · gain. Recorded by autograd likewise.
at::Tensor norm_forward(const at::Tensor& x, const at::Tensor& gain, float epsilon);

// The same layer over a cache, without gradients. packed_out: receives the new rows' packed
// queries, keys and values, for the cache.
struct CachedLayer {
  at::Tensor hidden;  // [batch·rows, d_model]
  at::Tensor packed;  // [batch·rows, packed_width]
};
CachedLayer layer_extend(const at::Tensor& x, const LayerWeights& weights, const RowPlan& plan,
                         const CacheView& cache, const float* mask);

// y = x · wᵀ without autograd. x: [rows, in] contiguous, w: [out, in].
at::Tensor plain_linear(const at::Tensor& x, const at::Tensor& w);

}  // namespace prefgrid
