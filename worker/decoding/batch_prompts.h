// A batch of prompts of unequal length in one key/value cache. Every shape is a function of the
// batch's size and the given room, never of a neighbour's length, and so is every bit of a row:
// the prompts lie in a region of fixed width, its unused part is masked.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/nn/tokenizer.h"
#include "worker/nn/transformer.h"

namespace prefgrid {

struct BatchState {
  KvCache cache;                      // batch = items; length counts from the region's width
  std::vector<std::int64_t> lengths;  // tokens of each prompt
  std::int64_t region = 0;            // cache rows reserved for the prompts
  at::Tensor last_hidden;             // [items, d_model], at each prompt's last token

  std::int64_t items() const { return static_cast<std::int64_t>(lengths.size()); }
  std::int64_t steps() const { return cache.length - region; }  // response rows in the cache
};

// region >= every prompt's length; capacity: cache rows beyond the region.
BatchState prefill_batch(const Transformer& model, std::span<const std::vector<TokenId>> prompts,
                         std::int64_t region, std::int64_t capacity);

// Additive mask for `rows` new rows an item, [items, rows, cache.length + rows]: all see the item's
// prompt and its response so far; among themselves only row i row i (leaves of one tree).
at::Tensor leaf_mask(const BatchState& state, std::int64_t rows);

// [items, rows] int64: the position after the response so far, for every row.
at::Tensor next_positions(const BatchState& state, std::int64_t rows);

}  // namespace prefgrid
