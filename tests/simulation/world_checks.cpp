// What must hold in the simulated cluster, seen from outside the core.
#include <algorithm>

#include "tests/simulation/world.h"

namespace prefgrid::simulation {

// Who was told that an experiment is cancelled, or lives again, finds it so.
void World::check_cancelled() {
  for (const ExperimentSubmitted& stored : store_.experiments) {
    if (core_ && core_->progress(stored.id).cancelled != stored.cancelled) {
      violate(stored.name + " was " + (stored.cancelled ? "" : "not ") + "cancelled");
    }
  }
}

void World::check_grants(const SendLeases& leases) {
  for (const LeaseGrant& grant : leases.leases) {
    const std::string name = grant.id.job.short_hex();
    if (!store_.leased(grant.id)) violate("a lease of " + name + " left before it was durable");
    if (store_.done(grant.id.job)) violate("job " + name + " is done and was leased again");
    const auto [holder, is_new] = granted_to_.try_emplace(grant.id, leases.peer.bytes);
    if (!is_new && holder->second != leases.peer.bytes) {
      violate("one attempt of job " + name + " was given to two processes");
    }
    for (const std::size_t input : pool_job(grant.id.job).inputs) {
      if (!store_.done(pool_[input].key)) violate("job " + name + " was leased before its inputs");
    }
    if (plans_.at(static_cast<std::uint32_t>(grant.experiment))->jobs[grant.plan_index].key !=
        grant.id.job) {
      violate("a grant of job " + name + " names another place of the plan");
    }
  }
}

void World::check_settled(const LeaseId& lease) {
  const bool produced = std::any_of(agents_.begin(), agents_.end(), [&lease](const auto& agent) {
    return agent->produced().contains(lease);
  });
  if (!produced || store_.done(lease.job)) return;
  const JobFact* fact = store_.job(lease.job);
  const bool cancelled = store_.dropped_as_cancelled(lease);
  const bool outdated =
      fact && !pool_job(lease.job).deterministic && fact->attempt != lease.attempt;
  if (cancelled || outdated) return;
  violate("a result of job " + lease.job.short_hex() + " was acknowledged and is not stored");
}

void World::check_end(bool after_retry) {
  check_cancelled();
  for (const ExperimentId id : core_->experiments()) {
    const ExperimentProgress progress = core_->progress(id);
    if (!progress.finished) violate(progress.name + " did not finish");
    if (progress.cancelled) continue;
    for (const CoreJob& job : plans_.at(static_cast<std::uint32_t>(id))->jobs) {
      const std::string state = core_->job(job.key)->state;
      const bool bad = doomed(pool_index_.at(job.key));
      const std::string name = job.key.short_hex();
      if (bad && state == "done") violate("job " + name + " cannot succeed and is done");
      if (!bad && state != "done" && after_retry) {
        violate("job " + name + " ended as " + state);
      }
      if ((state == "done") != store_.done(job.key)) violate("job " + name + " differs on disk");
      if (state != "done" && core_->why_waiting(job.key).empty()) {
        violate("job " + name + " does not say why it is not done");
      }
    }
  }
}

}  // namespace prefgrid::simulation
