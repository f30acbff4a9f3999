#include "experiments/datasets/dataset.h"

#include <algorithm>

#include "common/random.h"

namespace prefgrid {
namespace {

// Precondition: items sorted by user.
template <class Item>
std::vector<std::uint32_t> items_of(const std::vector<Item>& items, std::uint32_t user,
                                    Split split) {
  struct Ranked {
    std::uint64_t hash;
    std::uint32_t index;
  };
  std::vector<Ranked> ranked;
  for (const Item& item : std::ranges::equal_range(items, user, {}, &Item::user)) {
    if (item.split != split) continue;
    ranked.push_back({stable_hash(item.id), static_cast<std::uint32_t>(&item - items.data())});
  }
  std::ranges::stable_sort(ranked, {}, &Ranked::hash);
  std::vector<std::uint32_t> indices;
  for (const Ranked& item : ranked) indices.push_back(item.index);
  return indices;
}

}  // namespace

const char* to_string(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::valid:
      return "valid";
    case Split::test:
      return "test";
  }
  return "?";
}

std::vector<std::uint32_t> Dataset::pairs_of(std::uint32_t user, Split split) const {
  return items_of(pairs, user, split);
}

std::vector<std::uint32_t> Dataset::completions_of(std::uint32_t user, Split split) const {
  return items_of(completions, user, split);
}

}  // namespace prefgrid
