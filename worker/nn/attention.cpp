#include "worker/nn/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "worker/nn/kernels.h"
#include "worker/nn/product.h"

namespace prefgrid {
namespace {

constexpr std::int64_t tile_rows = 64;

float score_scale(const AttentionShape& shape) {
  return 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
}

// Where one head of one sequence lies in packed rows.
struct Head {
  std::int64_t query;  // offsets in floats
  std::int64_t key;
  std::int64_t value;
  std::int64_t out;
};
Head head_of(const AttentionShape& shape, std::int64_t sequence, std::int64_t head) {
  const std::int64_t group = head / (shape.heads / shape.kv_heads);
  const std::int64_t base = sequence * shape.rows * shape.packed_width();
  return {base + head * shape.head_dim, base + (shape.heads + group) * shape.head_dim,
          base + (shape.heads + shape.kv_heads + group) * shape.head_dim,
          sequence * shape.rows * shape.query_width() + head * shape.head_dim};
}

// A tile of queries and the keys that any of them sees.
struct Tile {
  std::int64_t first;  // query rows
  std::int64_t count;
  std::int64_t begin;  // key rows
  std::int64_t width;
};
template <class Body>
void for_each_tile(std::int64_t rows, const Visible* visible, const Body& body) {
  for (std::int64_t first = 0; first < rows; first += tile_rows) {
    const std::int64_t count = std::min(tile_rows, rows - first);
    const std::int64_t begin = visible[first].first;
    body(Tile{first, count, begin, first + count - begin});
  }
}

// Zero outside the keys that query `row` sees; `body` works on those inside, of which it must leave
// -inf as 0.
template <class Body>
void mask_row(const Tile& tile, std::int64_t row, const Visible* visible, float* scores,
              const Body& body) {
  float* line = scores + row * tile.width;
  const Visible& sees = visible[tile.first + row];
  const std::int64_t from = sees.first - tile.begin;
  const std::int64_t to = tile.first + row + 1 - tile.begin;
  std::fill(line, line + from, 0.0F);
  std::fill(line + sees.gap_begin - tile.begin, line + sees.gap_end - tile.begin,
            -std::numeric_limits<float>::infinity());
  std::fill(line + to, line + tile.width, 0.0F);
  body(line + from, to - from);
}

}  // namespace

void causal_attention(const AttentionShape& shape, const float* packed, const Visible* visible,
                      float* out, float* log_sums) {
  const std::int64_t width = shape.packed_width();
  const float scale = score_scale(shape);
  std::vector<float> scores(static_cast<std::size_t>(tile_rows * shape.rows));
  for (std::int64_t job = 0; job < shape.batch * shape.heads; ++job) {
    const std::int64_t sequence = job / shape.heads;
    const Head head = head_of(shape, sequence, job % shape.heads);
    const Visible* sees = visible + sequence * shape.rows;
    float* sums = log_sums + job * shape.rows;
    for_each_tile(shape.rows, sees, [&](const Tile& tile) {
      multiply({false, true, tile.count, tile.width, shape.head_dim},
               packed + head.query + tile.first * width, width,
               packed + head.key + tile.begin * width, width, scores.data(), tile.width);
      for (std::int64_t row = 0; row < tile.count; ++row) {
        mask_row(tile, row, sees, scores.data(), [&](float* line, std::int64_t size) {
          sums[tile.first + row] = kernels::softmax(line, size, scale);
        });
      }
      multiply({false, false, tile.count, shape.head_dim, tile.width}, scores.data(), tile.width,
               packed + head.value + tile.begin * width, width,
               out + head.out + tile.first * shape.query_width(), shape.query_width());
    });
  }
}

void causal_attention_backward(const AttentionShape& shape, const float* packed,
                               const Visible* visible, const float* out, const float* log_sums,
                               const float* dout, float* dpacked) {
  const std::int64_t width = shape.packed_width();
  const std::int64_t out_width = shape.query_width();
  const std::int64_t depth = shape.head_dim;
  const float scale = score_scale(shape);
  std::fill(dpacked, dpacked + shape.batch * shape.rows * width, 0.0F);
  std::vector<float> p(static_cast<std::size_t>(tile_rows * shape.rows));
  std::vector<float> ds(p.size());
  for (std::int64_t job = 0; job < shape.batch * shape.heads; ++job) {
    const std::int64_t sequence = job / shape.heads;
    const Head head = head_of(shape, sequence, job % shape.heads);
    const Visible* sees = visible + sequence * shape.rows;
    const float* sums = log_sums + job * shape.rows;
    for_each_tile(shape.rows, sees, [&](const Tile& tile) {
      const std::int64_t queries = head.query + tile.first * width;
      const std::int64_t keys = head.key + tile.begin * width;
      const std::int64_t values = head.value + tile.begin * width;
      const std::int64_t outs = head.out + tile.first * out_width;
      multiply({false, true, tile.count, tile.width, depth}, packed + queries, width, packed + keys,
               width, p.data(), tile.width);
      multiply({false, true, tile.count, tile.width, depth}, dout + outs, out_width,
               packed + values, width, ds.data(), tile.width);
      for (std::int64_t row = 0; row < tile.count; ++row) {
        const std::int64_t at = outs + row * out_width;
        const float delta = kernels::dot(out + at, dout + at, depth);
        mask_row(tile, row, sees, p.data(), [&](float* line, std::int64_t size) {
          kernels::exp_shifted(scale, sums[tile.first + row], size, line);
        });
        kernels::softmax_backward(p.data() + row * tile.width, scale, delta, tile.width,
                                  ds.data() + row * tile.width);
      }
      multiply({true, false, tile.width, depth, tile.count, 1, 1}, p.data(), tile.width,
               dout + outs, out_width, dpacked + values, width);
      multiply({false, false, tile.count, depth, tile.width}, ds.data(), tile.width, packed + keys,
               width, dpacked + queries, width);
      multiply({true, false, tile.width, depth, tile.count, 1, 1}, ds.data(), tile.width,
               packed + queries, width, dpacked + keys, width);
    });
  }
}

void cached_attention(const AttentionShape& shape, const float* packed, const CacheView& cache,
                      const float* mask, float* out) {
  const std::int64_t width = shape.packed_width();
  const std::int64_t rows = shape.rows;
  const std::int64_t seen = cache.length + rows;
  const std::int64_t group = shape.heads / shape.kv_heads;
  const float scale = score_scale(shape);
  std::vector<float> scores(static_cast<std::size_t>(rows * seen));
  for (std::int64_t job = 0; job < shape.batch * shape.heads; ++job) {
    const std::int64_t sequence = job / shape.heads;
    const Head head = head_of(shape, sequence, job % shape.heads);
    const std::int64_t cached =
        (sequence * shape.kv_heads + job % shape.heads / group) * cache.capacity * shape.head_dim;
    multiply({false, true, rows, cache.length, shape.head_dim}, packed + head.query, width,
             cache.keys + cached, shape.head_dim, scores.data(), seen);
    multiply({false, true, rows, rows, shape.head_dim}, packed + head.query, width,
             packed + head.key, width, scores.data() + cache.length, seen);
    for (std::int64_t row = 0; row < rows; ++row) {
      float* line = scores.data() + row * seen;
      if (mask == nullptr) {
        std::fill(line + cache.length + row + 1, line + seen, 0.0F);
        kernels::softmax(line, cache.length + row + 1, scale);
        continue;
      }
      for (std::int64_t i = 0; i < seen; ++i) line[i] *= scale;
      kernels::add(mask + (sequence * rows + row) * seen, seen, line);
      kernels::softmax(line, seen, 1.0F);
    }
    multiply({false, false, rows, shape.head_dim, rows}, scores.data() + cache.length, seen,
             packed + head.value, width, out + head.out, shape.query_width());
    if (cache.length == 0) continue;
    multiply({false, false, rows, shape.head_dim, cache.length, 1, 1}, scores.data(), seen,
             cache.values + cached, shape.head_dim, out + head.out, shape.query_width());
  }
}

}  // namespace prefgrid
