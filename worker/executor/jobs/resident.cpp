#include "worker/executor/jobs/resident.h"

namespace prefgrid {

std::shared_ptr<const void> ResidentModels::find(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->value;
}

void ResidentModels::add(const std::string& key, std::shared_ptr<const void> value,
                         std::uint64_t bytes) {
  // Making an entry may have made others, but never itself.
  PREFGRID_CHECK(!by_key_.contains(key), "resident entry made twice: " + key);
  entries_.push_front({key, std::move(value), bytes});
  by_key_[key] = entries_.begin();
  bytes_ += bytes;
  while (bytes_ > budget_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace prefgrid
