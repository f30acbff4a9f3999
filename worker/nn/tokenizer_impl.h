// What a Tokenizer holds: shared by its encoder (tokenizer.cpp) and its file (tokenizer_json.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "worker/nn/pretokenizer.h"
#include "worker/nn/tokenizer.h"

namespace prefgrid {

inline constexpr std::string_view begin_text = "<|begin_of_text|>";
inline constexpr std::string_view end_text = "<|end_of_text|>";

struct Tokenizer::Impl {
  struct Merge {
    std::int32_t rank = 0;
    TokenId result = 0;
  };
  struct MergePair {
    TokenId left = 0;
    TokenId right = 0;
  };

  std::vector<std::string> tokens;     // bytes by id; "" for a special one
  std::vector<std::string> specials;   // text by id; "" for an ordinary one
  std::vector<MergePair> merge_order;  // by rank
  std::unordered_map<std::uint64_t, Merge> merges;
  TokenId byte_tokens[256] = {};
  TokenId begin = -1;
  TokenId end = -1;
  std::string fingerprint;
  PreTokenizer pretokenizer;

  static std::uint64_t key(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  // Fills what follows from tokens, specials and merge_order. False: a single byte has no token.
  bool finish();
  void encode_piece(std::string_view piece, std::vector<TokenId>& out) const;
};

}  // namespace prefgrid
