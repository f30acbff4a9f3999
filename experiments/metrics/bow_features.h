// Hashed bag of words of a response: uni- and bigrams with their case, and the style of its first
// line (initial capital, final full stop). A reward model without a language model: the anchor that
// tests hold on to. Depends on the response alone; the prompt is not read. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace prefgrid {

struct SparseFeature {
  std::uint32_t index = 0;
  float value = 0;
  bool operator==(const SparseFeature&) const = default;
};

inline constexpr std::uint32_t default_bow_dimensions = 1'024;

// Indices below `dimensions` (> 0), each once, growing. A feature's index is its 64-bit FNV-1a
// hash, mixed, modulo `dimensions`: the same on every machine. Linear in the length of the text.
std::vector<SparseFeature> bow_features(std::string_view response,
                                        std::uint32_t dimensions = default_bow_dimensions);

// A linear reward on them. Precondition: weights has as many elements as `dimensions` was.
double dot(std::span<const SparseFeature> features, std::span<const float> weights);

}  // namespace prefgrid
