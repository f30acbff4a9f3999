// JobKey -> dense index, as open addressing over the keys that the job table holds anyway: 4 bytes
// a slot, at most two thirds full. Keys are never removed.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "common/ids.h"

namespace prefgrid {

class KeyIndex {
 public:
  // key_of(index) gives the key of an index that was inserted.
  template <class KeyOf>
  std::optional<std::uint32_t> find(const JobKey& key, const KeyOf& key_of) const {
    if (slots_.empty()) return std::nullopt;
    for (std::size_t at = std::hash<JobKey>{}(key)&mask();; at = (at + 1) & mask()) {
      if (slots_[at] == empty) return std::nullopt;
      if (key_of(slots_[at]) == key) return slots_[at];
    }
  }

  // Precondition: the key is not there.
  template <class KeyOf>
  void insert(std::uint32_t index, const KeyOf& key_of) {
    if (3 * (used_ + 1) > 2 * slots_.size()) reserve(used_ + 1, key_of);
    place(index, key_of);
    ++used_;
  }

  template <class KeyOf>
  void reserve(std::size_t keys, const KeyOf& key_of) {
    std::size_t size = slots_.empty() ? 16 : slots_.size();
    while (3 * keys > 2 * size) size *= 2;
    if (size == slots_.size()) return;
    std::vector<std::uint32_t> old = std::exchange(slots_, std::vector(size, empty));
    for (const std::uint32_t index : old) {
      if (index != empty) place(index, key_of);
    }
  }

  std::size_t memory_bytes() const { return slots_.capacity() * sizeof(std::uint32_t); }

 private:
  static constexpr std::uint32_t empty = std::numeric_limits<std::uint32_t>::max();

  std::size_t mask() const { return slots_.size() - 1; }

  template <class KeyOf>
  void place(std::uint32_t index, const KeyOf& key_of) {
    std::size_t at = std::hash<JobKey>{}(key_of(index)) & mask();
    while (slots_[at] != empty) at = (at + 1) & mask();
    slots_[at] = index;
  }

  std::vector<std::uint32_t> slots_;
  std::size_t used_ = 0;
};

}  // namespace prefgrid
