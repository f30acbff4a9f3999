// The workers that said hello (or that a stored lease names), and the leases that they hold.
// Leases hang on their worker in the order in which they were given.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/core/core.h"
#include "coordinator/core/job_table.h"

namespace prefgrid {

using WorkerSlot = std::uint32_t;
using LeaseSlot = std::uint32_t;

struct LeaseEntry {
  JobIndex job = no_index;  // no_index: the slot is free
  Attempt attempt = 0;
  WorkerSlot worker = 0;
  LeaseSlot previous = no_index;
  LeaseSlot next = no_index;
  double expected_ms = 0;
  bool confirmed = false;  // the worker has named it since its last hello, or since it was given
  MonotonicMs given{};
  MonotonicMs last_sign{};  // when it was given, or the worker last named it
  std::optional<Progress> progress;
};

struct Worker {
  bool live = false;             // false: the slot is free
  std::uint32_t generation = 0;  // of the slot's use: old timers do not match
  std::string name;
  std::string host;
  std::uint64_t pid = 0;
  std::optional<PeerId> peer;  // nullopt: a stored lease names it, it has not come back yet
  std::uint32_t executors = 0;
  std::vector<KindVersion> offers;   // sorted: what it says that it can run
  std::vector<std::uint16_t> kinds;  // those of JobTable's kinds that are among its offers
  NumericsProfile profile;
  MonotonicMs last_heard{};
  MonotonicMs rests_until{};  // it handed leases back: it is leaving
  bool draining = false;
  std::string waits_for;  // it takes no lease for now, and why; "": it does
  bool resend_armed = false;
  LeaseSlot first_lease = no_index;
  LeaseSlot last_lease = no_index;
  std::size_t leases = 0;
  double expected_ms = 0;              // work in hand
  std::deque<std::uint64_t> resident;  // affinities, newest first

  double fill() const {
    return static_cast<double>(leases) / static_cast<double>(executors == 0 ? 1 : executors);
  }
};

class WorkerTable {
 public:
  std::optional<WorkerSlot> by_name(const std::string& name) const;
  std::optional<WorkerSlot> by_peer(const PeerId& peer) const;
  const Worker& operator[](WorkerSlot slot) const { return workers_[slot]; }
  Worker& edit(WorkerSlot slot) { return workers_[slot]; }
  std::size_t slots() const { return workers_.size(); }  // free ones included

  // Precondition: the name is free.
  WorkerSlot add(const std::string& name);
  // Precondition: it holds no lease.
  void remove(WorkerSlot slot);
  void set_peer(WorkerSlot slot, const PeerId& peer);
  std::uint32_t executors() const { return executors_; }  // of connected workers
  void set_executors(WorkerSlot slot, std::uint32_t executors);

  LeaseSlot give(WorkerSlot slot, JobIndex job, Attempt attempt, double expected_ms,
                 MonotonicMs now);
  void release(LeaseSlot lease);
  const LeaseEntry& lease(LeaseSlot lease) const { return leases_[lease]; }
  LeaseEntry& edit_lease(LeaseSlot lease) { return leases_[lease]; }
  std::vector<LeaseSlot> leases_of(WorkerSlot slot) const;  // oldest first

  // The worker loads what that affinity stands for; the least recent ones are forgotten.
  void make_resident(WorkerSlot slot, std::uint64_t affinity);
  std::optional<WorkerSlot> owner(std::uint64_t affinity) const;  // the last that loaded it

  void check_invariants() const;

 private:
  std::vector<Worker> workers_;
  std::vector<WorkerSlot> free_workers_;
  std::vector<LeaseEntry> leases_;
  std::vector<LeaseSlot> free_leases_;
  std::unordered_map<std::string, WorkerSlot> names_;
  std::unordered_map<std::string, WorkerSlot> peers_;
  std::unordered_map<std::uint64_t, WorkerSlot> owners_;
  std::uint32_t executors_ = 0;
};

}  // namespace prefgrid
