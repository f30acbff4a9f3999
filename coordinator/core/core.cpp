#include "coordinator/core/core.h"

#include <utility>

#include "coordinator/core/core_impl.h"
#include "coordinator/core/planted_bug.h"

namespace prefgrid {

#ifdef PREFGRID_PLANTED_BUGS
PlantedBug planted_bug = PlantedBug::none;
#endif

Core::Core(CoreOptions options) : impl_(std::make_unique<Impl>(options)) {}
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;
Core::~Core() = default;

Effects Core::react(MonotonicMs now, WallMs wall, std::vector<Event> events) {
  return impl_->react(now, wall, std::move(events));
}

Effects Core::react(MonotonicMs now, WallMs wall, Event event) {
  std::vector<Event> events;
  events.push_back(std::move(event));
  return impl_->react(now, wall, std::move(events));
}

std::optional<MonotonicMs> Core::next_deadline() const {
  if (impl_->timers.empty()) return std::nullopt;
  return impl_->timers.top().due;
}

std::map<NumericsProfile, std::uint64_t> Core::result_profiles() const {
  return impl_->profiles;
}
CoreCounters Core::counters() const {
  return impl_->counters;
}
std::size_t Core::job_count() const {
  return impl_->table.size();
}
std::size_t Core::memory_bytes() const {
  return impl_->table.memory_bytes() + impl_->queue.memory_bytes();
}
void Core::check_invariants() const {
  impl_->check_invariants();
}

}  // namespace prefgrid
