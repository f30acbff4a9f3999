// A worker as the protocol wants it, in the small: it says hello until it is welcomed, beats, runs
// its leases first come first served, repeats what is not settled, and says hello again when the
// coordinator falls silent.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/random.h"
#include "coordinator/core/core.h"

namespace prefgrid::simulation {

// How a job behaves, whoever runs it.
struct Nature {
  enum class Kind { good, fails, kills_worker } kind = Kind::good;
  std::int64_t duration_ms = 10;
  bool has_artifact = false;
};

class FakeAgent {
 public:
  // What it has in common with the world around it.
  struct Surroundings {
    RandomStream& random;
    std::function<Nature(const JobKey&)> nature;
    std::function<void(const std::string& peer, Message)> send;
    std::function<void(ArtifactDigest)> upload;  // arrives some time
    const bool& faults;
  };

  FakeAgent(std::string name, std::uint32_t executors, std::vector<KindVersion> kinds,
            Surroundings around);

  void start(std::int64_t now);  // a new process
  void kill();
  void hang(std::int64_t until) { hung_until_ = until; }
  void leave(std::int64_t now);  // SIGTERM: hands everything back, then exits
  // Its disk is full for a while: hands back what it has not begun, and what ends meanwhile.
  void run_out_of_room(std::int64_t now, std::int64_t until);
  void receive(const Message& message, std::int64_t now);
  void receive(const std::vector<LeaseGrant>& grants, std::int64_t now);
  void work(std::int64_t now);
  std::int64_t next_time() const;

  bool alive() const { return alive_; }
  bool idle() const { return queue_.empty() && running_.empty() && unsettled_.empty(); }
  std::int64_t hung_until() const { return hung_until_; }
  const std::string& name() const { return name_; }
  const std::string& peer() const { return peer_; }
  std::uint64_t pid() const { return pid_; }
  std::string host() const { return "host of " + name_; }
  // Every lease for which a process of this agent had a result to send.
  const std::set<LeaseId>& produced() const { return produced_; }

 private:
  struct Running {
    LeaseId lease;
    std::int64_t ends = 0;
  };
  struct Unsettled {
    Message message;
    std::int64_t next_send = 0;
  };

  void say_hello(std::int64_t now);
  bool holds(const LeaseId& lease) const;
  void forget(const LeaseId& lease);  // a queued or running one
  void finish(const LeaseId& lease, std::int64_t now);

  const std::string name_;
  const std::uint32_t executors_;
  const std::vector<KindVersion> kinds_;
  Surroundings around_;

  bool alive_ = false;
  bool welcomed_ = false;
  std::uint64_t pid_ = 0;
  std::string peer_;
  std::int64_t hung_until_ = 0;
  std::int64_t no_room_until_ = 0;
  std::int64_t last_heard_ = 0;
  std::int64_t next_beat_ = 0;
  std::deque<LeaseId> queue_;
  std::vector<Running> running_;
  std::map<LeaseId, Unsettled> unsettled_;
  std::set<LeaseId> produced_;
};

}  // namespace prefgrid::simulation
