#include "experiments/metrics/rouge.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace prefgrid {
namespace {

bool alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

double f1(std::size_t common, std::size_t reference, std::size_t generated) {
  if (common == 0) return 0;
  const double precision = static_cast<double>(common) / static_cast<double>(generated);
  const double recall = static_cast<double>(common) / static_cast<double>(reference);
  return 2 * precision * recall / (precision + recall);
}

using TokenIds = std::vector<std::uint32_t>;

// Small numbers for words, shared by both texts.
class Vocabulary {
 public:
  TokenIds ids(std::string_view text) {
    TokenIds result;
    for (std::string& token : rouge_tokens(text)) {
      result.push_back(ids_.try_emplace(std::move(token), static_cast<std::uint32_t>(ids_.size()))
                           .first->second);
    }
    return result;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
};

std::vector<std::uint64_t> sorted_ngrams(const TokenIds& ids, std::size_t n) {
  std::vector<std::uint64_t> ngrams;
  for (std::size_t i = 0; i + n <= ids.size(); ++i) {
    const std::uint64_t high = n == 2 ? std::uint64_t{ids[i + 1]} + 1 : 0;
    ngrams.push_back(high << 32 | ids[i]);
  }
  std::ranges::sort(ngrams);
  return ngrams;
}

// Clipped overlap: each n-gram counts as often as in the text that has fewer of it.
double ngram_f1(const TokenIds& reference, const TokenIds& generated, std::size_t n) {
  const auto a = sorted_ngrams(reference, n);
  const auto b = sorted_ngrams(generated, n);
  std::vector<std::uint64_t> common;
  std::ranges::set_intersection(a, b, std::back_inserter(common));
  return f1(common.size(), a.size(), b.size());
}

// Longest common subsequence, 64 columns a word. Source: Hyyro, "Bit-parallel LCS-length
// computation revisited", 2004: V' = (V + (V & M)) | (V & ~M); the length is the number of zeros
// left in V.
std::size_t lcs_length(const TokenIds& a, const TokenIds& b) {
  const std::size_t words = (a.size() + 63) / 64;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> positions;
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto& mask = positions.try_emplace(a[i], words, 0).first->second;
    mask[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  std::vector<std::uint64_t> v(words, ~std::uint64_t{0});
  for (const std::uint32_t token : b) {
    const auto found = positions.find(token);
    if (found == positions.end()) continue;
    std::uint64_t carry = 0;
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint64_t u = v[w] & found->second[w];
      const std::uint64_t with_carry = v[w] + carry;
      const std::uint64_t sum = with_carry + u;
      carry = static_cast<std::uint64_t>(with_carry < carry) | static_cast<std::uint64_t>(sum < u);
      v[w] = sum | (v[w] & ~found->second[w]);
    }
  }
  std::size_t length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) length += (v[i / 64] >> (i % 64) & 1) == 0;
  return length;
}

}  // namespace

std::vector<std::string> rouge_tokens(std::string_view text) {
  std::vector<std::string> tokens;
  std::string token;
  const auto end_token = [&] {
    if (!token.empty()) tokens.push_back(std::move(token));
    token.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (alphanumeric(lower)) {
      token.push_back(lower);
    } else if (text.substr(i, 3) == "\xE2\x84\xAA") {  // U+212A, Kelvin sign
      token.push_back('k');
      i += 2;
    } else if (text.substr(i, 2) == "\xC4\xB0") {  // U+0130: "i" and a combining dot
      token.push_back('i');
      end_token();
      i += 1;
    } else {
      end_token();
    }
  }
  end_token();
  return tokens;
}

Rouge rouge(std::string_view reference, std::string_view generated) {
  Vocabulary vocabulary;
  const TokenIds a = vocabulary.ids(reference);
  const TokenIds b = vocabulary.ids(generated);
  Rouge scores;
  scores.rouge1 = ngram_f1(a, b, 1);
  scores.rouge2 = ngram_f1(a, b, 2);
  scores.rougeL = f1(lcs_length(a, b), a.size(), b.size());
  return scores;
}

}  // namespace prefgrid
