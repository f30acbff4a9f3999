// Byte-level BPE: trained here or read from a Hugging Face `tokenizer.json`. Free of torch.
// Pre-tokenizer: GPT-2's pattern (PCRE2). Every byte string has an encoding and decodes to itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace prefgrid {

using TokenId = std::int32_t;

class Tokenizer {
 public:
  struct Impl;  // worker/nn/tokenizer_impl.h

  // Merges the most frequent pair until `vocab_size` tokens (256 bytes and the specials included);
  // ties go to the pair whose bytes are smaller. Stops early, with a smaller vocabulary, when no
  // pair occurs twice. Deterministic.
  static Result<Tokenizer> train(std::span<const std::string> texts, std::int64_t vocab_size);
  static Result<Tokenizer> load(const std::filesystem::path& tokenizer_json);
  Result<void> save(const std::filesystem::path& tokenizer_json) const;

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  std::vector<TokenId> encode(std::string_view text) const;   // no special tokens are added
  std::string decode(std::span<const TokenId> tokens) const;  // specials are left out
  // The bytes of one token; "" for a special one.
  std::string_view bytes(TokenId token) const;

  std::int64_t vocab_size() const;
  TokenId begin_token() const;  // "<|begin_of_text|>"
  TokenId end_token() const;    // "<|end_of_text|>"
  // SHA-256 of vocabulary and merges: two models may guide each other token by token if equal.
  const std::string& fingerprint() const;

 private:
  Tokenizer();
  std::unique_ptr<Impl> impl_;
};

}  // namespace prefgrid
