// Byte-pair encoding is learnt here: which pairs to merge, in which order. Pure.
// Source: Sennrich et al. 2016, with incremental pair counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace prefgrid {

struct BpeMerge {
  std::int32_t left = 0;  // indices into BpeVocabulary::tokens
  std::int32_t right = 0;
  std::int32_t result = 0;
};

struct BpeVocabulary {
  std::vector<std::string> tokens;  // the 256 bytes first, in order; then one a merge
  std::vector<BpeMerge> merges;     // by rank
};

// words: how often each piece of text occurs. Stops at `size` tokens, or when no pair occurs twice.
// The most frequent pair first; of equals the one whose (left, right) bytes are smaller.
BpeVocabulary train_bpe(const std::unordered_map<std::string, std::int64_t>& words,
                        std::size_t size);

}  // namespace prefgrid
