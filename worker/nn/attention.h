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

// What a row attends to: the rows [first, gap_begin) and [gap_end, itself] of its sequence. Along a
// sequence `first` never falls; first <= gap_begin <= gap_end <= the row itself.
struct Visible {
  std::int32_t first = 0;
  std::int32_t gap_begin = 0;
  std::int32_t gap_end = 0;
};

// packed: [batch·rows, packed_width]: queries, keys (both after RoPE), values of each row.
// visible: [batch·rows]. out: [batch·rows, query_width].
// log_sums: [batch, heads, rows], for the backward pass.
void causal_attention(const AttentionShape& shape, const float* packed, const Visible* visible,
                      float* out, float* log_sums);
// dpacked: like packed, overwritten.
void causal_attention_backward(const AttentionShape& shape, const float* packed,
                               const Visible* visible, const float* out, const float* log_sums,
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
