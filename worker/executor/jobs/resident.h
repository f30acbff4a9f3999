// What stays loaded between jobs: models, datasets, features, candidate states. A cache and nothing
// more: every entry is a pure function of its key, which names content by JobKey or digest, so no
// result depends on what was resident. Least recently used entries go when the budget is spent;
// whoever still holds one keeps it alive. Single-threaded.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/result.h"

namespace prefgrid {

inline constexpr std::uint64_t resident_budget_bytes = 1'500ull << 20;

struct ResidentModels {
  explicit ResidentModels(std::uint64_t budget_bytes = resident_budget_bytes)
      : budget_bytes_(budget_bytes) {}

  // The entry of that key, made by `make` (-> Result<T>) where it is missing. `bytes_of(const T&)`
  // tells its size. One key always goes with one T.
  template <class T, class Make, class BytesOf>
  Result<std::shared_ptr<const T>> get(const std::string& key, Make&& make, BytesOf&& bytes_of) {
    if (std::shared_ptr<const void> found = find(key)) {
      return std::static_pointer_cast<const T>(found);
    }
    Result<T> made = make();
    if (!made) return made.error();
    auto entry = std::make_shared<const T>(*std::move(made));
    add(key, entry, bytes_of(*entry));
    return std::shared_ptr<const T>(entry);
  }

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const void> value;
    std::uint64_t bytes = 0;
  };

  std::shared_ptr<const void> find(const std::string& key);
  void add(const std::string& key, std::shared_ptr<const void> value, std::uint64_t bytes);

  std::uint64_t budget_bytes_;
  std::uint64_t bytes_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace prefgrid
