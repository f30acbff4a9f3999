#include "experiments/datasets/item_keys.h"

#include <algorithm>

namespace prefgrid {
namespace {

bool blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

// The finaliser of MurmurHash3.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
  return x ^ x >> 33;
}

std::uint64_t join(std::uint64_t a, std::uint64_t b) {
  return mix(a * 0x9e3779b97f4a7c15ull + b + 1);
}

}  // namespace

std::string normalise_text(std::string_view text) {
  std::string normal;
  normal.reserve(text.size());
  bool gap = false;
  for (const char c : text) {
    if (blank(c)) {
      gap = !normal.empty();
      continue;
    }
    if (gap) normal.push_back(' ');
    gap = false;
    normal.push_back(lower(c));
  }
  return normal;
}

// FNV-1a over normalise_text(text), without building it.
std::uint64_t text_key(std::string_view text) {
  std::uint64_t state = 14695981039346656037ull;
  bool started = false;
  bool gap = false;
  const auto add = [&](char c) {
    state = (state ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  };
  for (const char c : text) {
    if (blank(c)) {
      gap = started;
      continue;
    }
    if (gap) add(' ');
    gap = false;
    started = true;
    add(lower(c));
  }
  return mix(state);
}

std::uint64_t item_key(const PairItem& item) {
  const std::uint64_t chosen = text_key(item.chosen);
  const std::uint64_t rejected = text_key(item.rejected);
  return join(join(text_key(item.prompt), std::min(chosen, rejected)), std::max(chosen, rejected));
}

std::uint64_t item_key(const CompletionItem& item) {
  return join(text_key(item.prompt), text_key(item.completion));
}

}  // namespace prefgrid
