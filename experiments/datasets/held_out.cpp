#include "experiments/datasets/held_out.h"

#include <algorithm>

namespace prefgrid {
namespace {

constexpr std::uint64_t base = 0x100000001b3ull;  // odd, so that it has powers modulo 2^64

std::uint64_t next_code(std::uint64_t hash, char c) {
  return hash * base + static_cast<unsigned char>(c) + 1;
}

std::uint64_t window_hash(std::string_view text) {
  std::uint64_t hash = 0;
  for (const char c : text.substr(0, TextFinder::least_contained)) hash = next_code(hash, c);
  return hash;
}

// base^least_contained: what the byte that leaves the window weighs after the next step.
constexpr std::uint64_t leaving_weight = [] {
  std::uint64_t weight = 1;
  for (std::size_t i = 0; i < TextFinder::least_contained; ++i) weight *= base;
  return weight;
}();

}  // namespace

std::string comparable_text(std::string_view text) {
  std::string normal = normalise_text(text);
  while (!normal.empty() && (normal.back() == '.' || normal.back() == ' ')) normal.pop_back();
  return normal;
}

std::uint32_t TextFinder::add(std::string_view text) {
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(comparable_text(text));
  const std::string& added = texts_.back();
  if (added.size() >= least_contained) by_window_[window_hash(added)].push_back(number);
  if (!added.empty()) by_text_[added].push_back(number);
  return number;
}

std::vector<std::uint32_t> TextFinder::contained_in(std::string_view document) const {
  const std::string text = comparable_text(document);
  std::vector<std::uint32_t> found;
  if (text.size() < least_contained) return found;
  std::uint64_t hash = window_hash(text);
  for (std::size_t at = 0;; ++at) {
    if (const auto candidates = by_window_.find(hash); candidates != by_window_.end()) {
      for (const std::uint32_t number : candidates->second) {
        if (std::string_view(text).substr(at).starts_with(texts_[number])) found.push_back(number);
      }
    }
    if (at + least_contained >= text.size()) break;
    hash = next_code(hash, text[at + least_contained]) -
           leaving_weight * (static_cast<unsigned char>(text[at]) + 1ull);
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<std::uint32_t> TextFinder::equal_to(std::string_view document) const {
  const auto found = by_text_.find(comparable_text(document));
  return found == by_text_.end() ? std::vector<std::uint32_t>{} : found->second;
}

HeldOutTexts::HeldOutTexts(const Dataset& dataset) {
  const auto add = [&](const auto& item, std::string_view response, bool of_pair) {
    finder_.add(response);
    texts_.push_back({item.id, dataset.users[item.user].id, item.split, of_pair});
  };
  for (const PairItem& item : dataset.pairs) {
    if (item.split == Split::train) continue;
    add(item, item.chosen, true);
    add(item, item.rejected, true);
  }
  for (const CompletionItem& item : dataset.completions) {
    if (item.split != Split::train) add(item, item.completion, false);
  }
}

bool HeldOutTexts::clean(std::string_view prompt, std::string_view response) const {
  if (!finder_.equal_to(response).empty()) return false;
  std::string document(prompt);
  document += '\n';
  document += response;
  return finder_.contained_in(document).empty();
}

}  // namespace prefgrid
