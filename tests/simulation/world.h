// A deterministic cluster: one seed draws the jobs, the network's delays, losses, repetitions and
// reordering, the deaths of workers and of the coordinator (at any point of its loop), hung
// processes, full disks and foolish messages. Safety is checked at every step; then the faults stop
// and everything must come to its end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <variant>
#include <vector>

#include "common/random.h"
#include "coordinator/core/core.h"
#include "tests/simulation/fake_agent.h"
#include "tests/simulation/fake_store.h"

namespace prefgrid::simulation {

struct Options {
  std::uint64_t seed = 1;
  bool check_invariants = true;
  bool send_before_persist = false;  // a planted mistake of the loop
};

struct Outcome {
  std::string violation;  // "": all is well
  std::uint64_t trace_hash = 0;
  std::uint64_t reactions = 0;
  std::uint64_t coordinator_crashes = 0;
  std::uint64_t worker_kills = 0;
  std::uint64_t lost_messages = 0;
  std::uint64_t jobs_done = 0;
};

class World {
 public:
  explicit World(Options options);
  Outcome run();

 private:
  using Content = std::variant<Message, std::vector<LeaseGrant>>;
  struct Packet {
    std::int64_t at = 0;
    std::uint64_t number = 0;
    bool to_coordinator = false;
    std::string peer;
    Content content;
  };
  struct Later {
    bool operator()(const Packet& a, const Packet& b) const {
      return std::tie(a.at, a.number) > std::tie(b.at, b.number);
    }
  };
  struct PoolJob {
    JobKey key;
    std::vector<std::size_t> inputs;
    Nature nature;
    std::uint16_t kind = 0;
    bool deterministic = true;
    std::uint64_t affinity = 0;
  };
  enum class CrashPoint { none, before_persist, before_send, while_sending };

  // --- making the world ---
  void make_jobs();
  void make_agents();
  std::shared_ptr<const CorePlan> make_plan();

  // --- time ---
  void run_until_quiet(std::int64_t deadline);
  bool quiet() const;
  void advance();
  void deliver(const Packet& packet);
  void play_fault();
  void forge_message();

  // --- the coordinator's process ---
  void submit(std::uint32_t id);
  void coordinator_loop();
  void apply(Effects effects, CrashPoint crash);
  void persist(const std::vector<Fact>& facts);
  void send_out(const std::vector<Send>& sends, std::size_t count);
  void crash_coordinator();
  void restart_coordinator();
  MonotonicMs core_now() const { return MonotonicMs{time_ - clock_origin_}; }

  // --- checks ---
  void check_grants(const SendLeases& leases);
  void check_settled(const LeaseId& lease);
  void check_end(bool after_retry);
  void check_cancelled();
  void violate(const std::string& what);

  bool chance(std::uint64_t per_mille) { return random_.below(1'000) < per_mille; }
  void post(bool to_coordinator, const std::string& peer, Content content);
  void trace(std::uint64_t value);
  const PoolJob& pool_job(const JobKey& key) const { return pool_[pool_index_.at(key)]; }
  bool doomed(std::size_t job) const;  // it, or one before it, never succeeds

  Options options_;
  RandomStream random_;
  Outcome outcome_;
  bool faults_ = true;
  std::int64_t time_ = 0;

  // Drawn from the seed.
  std::uint64_t drop_per_mille_ = 0;
  std::uint64_t repeat_per_mille_ = 0;
  std::int64_t delay_ms_ = 1;
  std::uint64_t crash_per_mille_ = 0;
  std::int64_t fault_every_ms_ = 1;

  std::vector<PoolJob> pool_;
  std::map<JobKey, std::size_t> pool_index_;
  std::vector<KindVersion> kinds_;
  std::vector<std::unique_ptr<FakeAgent>> agents_;
  std::priority_queue<Packet, std::vector<Packet>, Later> packets_;
  std::uint64_t next_packet_ = 0;
  std::map<std::int64_t, std::vector<ArtifactDigest>> uploads_;
  std::int64_t next_fault_ = 0;
  std::map<std::uint32_t, std::shared_ptr<const CorePlan>> plans_;  // to be submitted

  FakeStore store_;
  std::optional<Core> core_;
  std::int64_t clock_origin_ = 0;
  std::int64_t down_until_ = 0;
  std::int64_t stopped_until_ = 0;
  std::vector<Event> inbox_;
  std::int64_t wake_at_ = 0;
  std::vector<ExperimentSubmitted> submitted_now_;  // in the batch under way
  std::map<ExperimentId, bool> cancelled_now_;      // likewise; false: lives again
  std::map<LeaseId, std::string> granted_to_;       // process by lease
};

Outcome simulate(const Options& options);

}  // namespace prefgrid::simulation
