// Grouped-query attention over packed rows of queries, keys and values, by tiles: causal with its
// backward pass for training, and over a key/value cache with any mask for decoding.
// Raw row-major fp32; allocates scratch only. Source: Vaswani et al. 2017; the backward pass
// recomputes the probabilities from their normalisers as Dao et al. 2022 do.
#pragma once

#include <cstdint>

namespace prefgrid {

struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t rows = 0;  // queries a sequence
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;

  std::int64_t query_width() const { return heads * head_dim; }
  std::int64_t packed_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

// packed: [batch·rows, packed_width]: queries, keys (both after RoPE), values of each row.
// starts: [batch·rows]: the first row of its sequence that a row attends to; never falls.
// out: [batch·rows, query_width]. log_sums: [batch, heads, rows], for the backward pass.
void causal_attention(const AttentionShape& shape, const float* packed, const std::int32_t* starts,
                      float* out, float* log_sums);
// dpacked: like packed, overwritten.
void causal_attention_backward(const AttentionShape& shape, const float* packed,
                               const std::int32_t* starts, const float* out, const float* log_sums,
                               const float* dout, float* dpacked);

// Keys and values of one layer: [batch, kv_heads, capacity, head_dim], `length` of them in use.
struct CacheView {
  const float* keys = nullptr;
  const float* values = nullptr;
  std::int64_t capacity = 0;
  std::int64_t length = 0;
};
// mask: [batch, rows, length + rows] or null (causal). out as above.
void cached_attention(const AttentionShape& shape, const float* packed, const CacheView& cache,
                      const float* mask, float* out);

}  // namespace prefgrid
