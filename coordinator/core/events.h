// What goes into the core: plain data, made by the loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/messages.h"
#include "common/transport.h"  // PeerId
#include "coordinator/core/effects.h"

namespace prefgrid {

struct Plan;  // coordinator/plan.h

// What the core needs of a plan; the specs stay with the loop. A job stands after its dependencies.
struct CoreJob {
  JobKey key;
  std::uint64_t affinity = 0;          // equal and not 0: they profit from the same executor
  std::uint32_t first_dependency = 0;  // into CorePlan::dependencies
  std::uint32_t dependency_count = 0;
  std::uint16_t kind = 0;     // into CorePlan::kinds
  std::uint16_t stage = 0;    // into CorePlan::stages
  bool deterministic = true;  // false: only the newest attempt's result is taken (design §4.2)
};
struct CorePlan {
  std::vector<KindVersion> kinds;
  std::vector<std::string> stages;
  std::vector<CoreJob> jobs;
  std::vector<std::uint32_t> dependencies;  // indices of earlier jobs of this plan
};
CorePlan core_plan(const Plan& plan);

// --- restoring: JobsRestored (in any number of pieces), then every stored experiment ---

// The newest job records of the store. Jobs that no experiment names are remembered: a later
// submission may.
struct JobsRestored {
  std::vector<JobFact> jobs;
};

// The loop writes the experiment's own record in the same batch as this event's facts. Cancelled
// jobs that it names live again, unless it is cancelled itself.
struct ExperimentSubmitted {
  ExperimentId id{};
  std::string name;
  std::int32_t priority = 0;             // higher runs first
  std::shared_ptr<const CorePlan> plan;  // read during react only
  bool restored = false;                 // from the store: nothing is announced
  bool cancelled = false;                // as the store's record says
};

// --- running ---

struct PeerMessage {
  PeerId peer;
  Message message;  // Request and Reply are the loop's own: the core ignores them
  // Of a ResultMessage: the named artefacts without inline data that the store does not hold whole.
  // The core commits the result once an ArtifactComplete has come for each.
  std::vector<ArtifactDigest> missing_artifacts = {};
  // Of a WorkerHello: Core::holder(name) is a process of the same host that is known to be gone.
  bool holder_gone = false;
};

struct ArtifactComplete {  // and durable
  ArtifactDigest digest;
};

// These leases could not be handed to the peer's queue (RouterSocket::try_send said no).
struct LeasesUndelivered {
  PeerId peer;
  std::vector<LeaseId> leases;
};

// The worker process is known to be dead (a child of `run` was reaped; or, after a restart, the
// worker was a child of the previous coordinator). Its leases need not time out.
struct WorkerGone {
  std::string name;
  std::string reason;
};

// The loop did not read for a while (the disk was full): nobody's silence counts.
struct LoopStalled {};

// Gives no more leases to that worker (true) or does again (false).
struct DrainWorker {
  std::string name;
  bool drain = true;
};

// Both of these: the loop writes the experiment's record in the same batch as the facts.
struct CancelExperiment {
  ExperimentId id{};
};
struct ReviveExperiment {  // a cancelled one was submitted again: its cancelled jobs live again
  ExperimentId id{};
  std::int32_t priority = 0;
};
// Jobs of the experiment that are quarantined or rest after a failure run at once, with fresh
// budgets.
struct RetryFailed {
  ExperimentId id{};
};

struct Tick {};  // next_deadline() has come

using Event = std::variant<JobsRestored, ExperimentSubmitted, PeerMessage, ArtifactComplete,
                           LeasesUndelivered, WorkerGone, LoopStalled, DrainWorker,
                           CancelExperiment, ReviveExperiment, RetryFailed, Tick>;

}  // namespace prefgrid
