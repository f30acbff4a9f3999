// What comes out of the core, as plain data. The loop's order: drain, react, write all facts in one
// synced batch, then send. A send may only leave after the facts of the same Effects are durable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "common/messages.h"
#include "common/transport.h"  // PeerId

namespace prefgrid {

inline constexpr std::size_t failure_class_count = 6;
// Charged failures by FailureClass.
using FailureCounts = std::array<std::uint32_t, failure_class_count>;

// --- facts, in the order in which they must be written; schemas/store.capnp has their layout ---

struct WaitingFact {};  // lost, returned or failed before; may run again
struct LeasedFact {
  std::string worker;
  WallMs since{};
};
struct DoneFact {};
struct QuarantinedFact {
  JobFailure failure;
};
struct CancelledFact {};

// JobRecord: the newest one of a job replaces the ones before.
struct JobFact {
  JobKey job;
  Attempt attempt = 0;  // the last one issued
  FailureCounts failures{};
  std::variant<WaitingFact, LeasedFact, DoneFact, QuarantinedFact, CancelledFact> state;
};

// EventRecord: appended.
namespace history {
struct Submitted {
  std::string experiment;
};
struct Leased {};
struct Done {};
struct Failed {
  JobFailure failure;
};
struct Quarantined {};
struct LeaseLost {};
struct LeaseReturned {};
struct ResultDropped {
  std::string reason;
};
struct WorkerJoined {
  std::string host;
};
struct WorkerLeft {
  std::string reason;
};
struct Cancelled {};
struct Retried {};
}  // namespace history

struct EventFact {
  WallMs wall{};
  std::optional<JobKey> job;  // nullopt: about a worker or an experiment
  Attempt attempt = 0;
  std::string worker;
  std::variant<history::Submitted, history::Leased, history::Done, history::Failed,
               history::Quarantined, history::LeaseLost, history::LeaseReturned,
               history::ResultDropped, history::WorkerJoined, history::WorkerLeft,
               history::Cancelled, history::Retried>
      what;
};

// ResultRecord and the job's log. Once in a job's life.
struct ResultFact {
  JobKey job;
  Attempt attempt = 0;
  std::string worker;
  WallMs committed{};
  JobResult result;
  std::string log;
};

using Fact = std::variant<JobFact, EventFact, ResultFact>;

// --- sends ---

struct LeaseGrant {
  LeaseId id;
  ExperimentId experiment{};     // one that wants the job, and
  std::uint32_t plan_index = 0;  // the job's place in its plan: where the loop finds the spec
  std::uint64_t affinity = 0;
};
// At most limits::leases_per_batch. Sent again, with the same attempts, when nothing was heard of
// them for limits::lease_timeout_ms: an agent ignores a lease that it holds already.
struct SendLeases {
  PeerId peer;
  std::vector<LeaseGrant> leases;
};
struct SendTo {
  PeerId peer;
  Message message;  // Welcome comes without software_version and bulk_endpoint: the loop adds them
};
using Send = std::variant<SendTo, SendLeases>;

struct Effects {
  std::vector<Fact> facts;
  std::vector<Send> sends;
  std::vector<ExperimentId> changed;  // whose progress changed, each once: for watchers
};

}  // namespace prefgrid
