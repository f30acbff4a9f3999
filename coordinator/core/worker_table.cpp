#include "coordinator/core/worker_table.h"

#include <algorithm>

#include "common/check.h"

namespace prefgrid {
namespace {

// Affinities remembered per executor: about what fits into its memory.
constexpr std::size_t residents_per_executor = 4;
constexpr std::size_t residents_limit = 64;

}  // namespace

std::optional<WorkerSlot> WorkerTable::by_name(const std::string& name) const {
  const auto found = names_.find(name);
  if (found == names_.end()) return std::nullopt;
  return found->second;
}

std::optional<WorkerSlot> WorkerTable::by_peer(const PeerId& peer) const {
  const auto found = peers_.find(peer.bytes);
  if (found == peers_.end()) return std::nullopt;
  return found->second;
}

WorkerSlot WorkerTable::add(const std::string& name) {
  PREFGRID_CHECK(!names_.contains(name), "worker " + name + " exists");
  if (free_workers_.empty()) {
    free_workers_.push_back(static_cast<WorkerSlot>(workers_.size()));
    workers_.emplace_back();
  }
  const WorkerSlot slot = free_workers_.back();
  free_workers_.pop_back();
  const std::uint32_t generation = workers_[slot].generation + 1;
  workers_[slot] = Worker{};
  workers_[slot].live = true;
  workers_[slot].generation = generation;
  workers_[slot].name = name;
  names_[name] = slot;
  return slot;
}

void WorkerTable::remove(WorkerSlot slot) {
  Worker& worker = workers_[slot];
  PREFGRID_CHECK(worker.live && worker.leases == 0, "worker " + worker.name + " holds leases");
  set_executors(slot, 0);
  if (worker.peer) peers_.erase(worker.peer->bytes);
  names_.erase(worker.name);
  for (const std::uint64_t affinity : worker.resident) {
    const auto found = owners_.find(affinity);
    if (found != owners_.end() && found->second == slot) owners_.erase(found);
  }
  worker.live = false;
  worker.peer.reset();
  worker.resident.clear();
  free_workers_.push_back(slot);
}

void WorkerTable::set_peer(WorkerSlot slot, const PeerId& peer) {
  Worker& worker = workers_[slot];
  if (worker.peer) peers_.erase(worker.peer->bytes);
  PREFGRID_CHECK(!peers_.contains(peer.bytes), "two workers on one connection");
  worker.peer = peer;
  peers_[peer.bytes] = slot;
}

void WorkerTable::set_executors(WorkerSlot slot, std::uint32_t executors) {
  executors_ = executors_ - workers_[slot].executors + executors;
  workers_[slot].executors = executors;
}

LeaseSlot WorkerTable::give(WorkerSlot slot, JobIndex job, Attempt attempt, double expected_ms,
                            MonotonicMs now) {
  if (free_leases_.empty()) {
    free_leases_.push_back(static_cast<LeaseSlot>(leases_.size()));
    leases_.emplace_back();
  }
  const LeaseSlot lease = free_leases_.back();
  free_leases_.pop_back();
  Worker& worker = workers_[slot];
  LeaseEntry& entry = leases_[lease];
  entry.job = job;
  entry.attempt = attempt;
  entry.worker = slot;
  entry.previous = worker.last_lease;
  entry.expected_ms = expected_ms;
  entry.given = entry.last_sign = now;
  if (worker.last_lease != no_index) leases_[worker.last_lease].next = lease;
  if (worker.first_lease == no_index) worker.first_lease = lease;
  worker.last_lease = lease;
  ++worker.leases;
  worker.expected_ms += expected_ms;
  return lease;
}

void WorkerTable::release(LeaseSlot lease) {
  LeaseEntry& entry = leases_[lease];
  PREFGRID_CHECK(entry.job != no_index, "a lease was released twice");
  Worker& worker = workers_[entry.worker];
  (entry.previous == no_index ? worker.first_lease : leases_[entry.previous].next) = entry.next;
  (entry.next == no_index ? worker.last_lease : leases_[entry.next].previous) = entry.previous;
  --worker.leases;
  // Sums of rounded numbers drift: an idle worker has nothing in hand.
  worker.expected_ms = worker.leases == 0 ? 0 : worker.expected_ms - entry.expected_ms;
  entry = LeaseEntry{};
  free_leases_.push_back(lease);
}

std::vector<LeaseSlot> WorkerTable::leases_of(WorkerSlot slot) const {
  std::vector<LeaseSlot> found;
  for (LeaseSlot l = workers_[slot].first_lease; l != no_index; l = leases_[l].next) {
    found.push_back(l);
  }
  return found;
}

void WorkerTable::make_resident(WorkerSlot slot, std::uint64_t affinity) {
  if (affinity == 0) return;
  Worker& worker = workers_[slot];
  owners_[affinity] = slot;
  if (!worker.resident.empty() && worker.resident.front() == affinity) return;
  std::erase(worker.resident, affinity);
  worker.resident.push_front(affinity);
  const std::size_t limit =
      std::min<std::size_t>(residents_limit, residents_per_executor * worker.executors);
  while (worker.resident.size() > std::max<std::size_t>(limit, 1)) {
    const auto owner = owners_.find(worker.resident.back());
    if (owner != owners_.end() && owner->second == slot) owners_.erase(owner);
    worker.resident.pop_back();
  }
}

std::optional<WorkerSlot> WorkerTable::owner(std::uint64_t affinity) const {
  const auto found = owners_.find(affinity);
  if (found == owners_.end()) return std::nullopt;
  return found->second;
}

void WorkerTable::check_invariants() const {
  std::uint32_t executors = 0;
  std::size_t live = 0;
  std::size_t peers = 0;
  for (WorkerSlot slot = 0; slot < workers_.size(); ++slot) {
    const Worker& worker = workers_[slot];
    if (!worker.live) continue;
    ++live;
    executors += worker.executors;
    PREFGRID_CHECK(by_name(worker.name) == slot, worker.name);
    if (worker.peer) {
      ++peers;
      PREFGRID_CHECK(by_peer(*worker.peer) == slot, worker.name);
    }
    const auto leases = leases_of(slot);
    PREFGRID_CHECK(leases.size() == worker.leases, worker.name);
    for (const LeaseSlot lease : leases) {
      PREFGRID_CHECK(leases_[lease].worker == slot, worker.name);
    }
    for (const std::uint64_t affinity : worker.resident) {
      const auto at = owner(affinity);
      PREFGRID_CHECK(!at || workers_[*at].live, worker.name);
    }
  }
  PREFGRID_CHECK(executors == executors_, std::to_string(executors));
  PREFGRID_CHECK(live == names_.size() && peers == peers_.size(), std::to_string(live));
}

}  // namespace prefgrid
