// A core with its clock in hand. Every step consumes all effects and checks the invariants.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "coordinator/core/core.h"

namespace prefgrid {

inline JobKey key_of(const std::string& name) {
  JobKey key;
  for (std::size_t word = 0; word < 4; ++word) {
    const std::uint64_t hash = stable_hash(name + "/" + std::to_string(word));
    std::memcpy(key.bytes.data() + 8 * word, &hash, 8);
  }
  return key;
}

inline ArtifactDigest digest_of(const std::string& name) {
  return ArtifactDigest{key_of("artefact " + name).bytes};
}

// plan.job("train").job("eval", {"train"}): names become keys, the name up to ':' becomes the
// stage, and the kind unless `kind` says otherwise.
class PlanBuilder {
 public:
  PlanBuilder& job(const std::string& name, const std::vector<std::string>& inputs = {},
                   std::uint64_t affinity = 0) {
    const std::string stage = name.substr(0, name.find(':'));
    CoreJob job;
    job.key = key_of(name);
    job.affinity = affinity;
    job.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size());
    job.dependency_count = static_cast<std::uint32_t>(inputs.size());
    job.kind = intern(plan_.kinds, KindVersion{kind_.empty() ? stage : kind_, version_});
    job.stage = intern(plan_.stages, stage);
    job.deterministic = deterministic_;
    for (const std::string& input : inputs) plan_.dependencies.push_back(indices_.at(input));
    indices_[name] = static_cast<std::uint32_t>(plan_.jobs.size());
    plan_.jobs.push_back(job);
    return *this;
  }
  PlanBuilder& jobs(const std::string& stage, int count, std::uint64_t affinity = 0) {
    for (int i = 0; i < count; ++i) job(stage + ":" + std::to_string(i), {}, affinity);
    return *this;
  }
  PlanBuilder& kind(std::string kind, std::uint32_t version = 1) {
    kind_ = std::move(kind);
    version_ = version;
    return *this;
  }
  PlanBuilder& not_deterministic() {
    deterministic_ = false;
    return *this;
  }
  std::shared_ptr<const CorePlan> build() const { return std::make_shared<CorePlan>(plan_); }

 private:
  template <class T>
  static std::uint16_t intern(std::vector<T>& list, const T& item) {
    auto found = std::find(list.begin(), list.end(), item);
    if (found == list.end()) found = list.insert(list.end(), item);
    return static_cast<std::uint16_t>(found - list.begin());
  }

  CorePlan plan_;
  std::map<std::string, std::uint32_t> indices_;
  std::string kind_;
  std::uint32_t version_ = 1;
  bool deterministic_ = true;
};

class CoreDriver {
 public:
  explicit CoreDriver(CoreOptions options = {}) : core_(options) {}

  Core& core() { return core_; }
  MonotonicMs now() const { return now_; }

  Effects step(std::vector<Event> events) {
    Effects effects = core_.react(now_, WallMs{1'000'000}, std::move(events));
    core_.check_invariants();
    remember(effects);
    return effects;
  }
  Effects step(Event event) {
    std::vector<Event> events;
    events.push_back(std::move(event));
    return step(std::move(events));
  }
  // As the loop does: a Tick at every deadline on the way.
  Effects advance(std::int64_t ms) {
    Effects all;
    const MonotonicMs end = now_ + ms;
    while (core_.next_deadline() && *core_.next_deadline() <= end) {
      now_ = std::max(now_, *core_.next_deadline());
      append(all, step(Tick{}));
    }
    now_ = end;
    append(all, step(Tick{}));
    return all;
  }
  void jump(std::int64_t ms) { now_ = now_ + ms; }  // nobody ticks meanwhile

  Effects submit(const PlanBuilder& plan, std::uint32_t id = 1, std::int32_t priority = 0) {
    return step(ExperimentSubmitted{ExperimentId{id}, "experiment " + std::to_string(id), priority,
                                    plan.build()});
  }
  Effects restore(const PlanBuilder& plan, std::vector<JobFact> facts, std::uint32_t id = 1,
                  bool cancelled = false) {
    step(JobsRestored{std::move(facts)});
    return step(restored(plan, id, cancelled));
  }
  static ExperimentSubmitted restored(const PlanBuilder& plan, std::uint32_t id,
                                      bool cancelled = false) {
    ExperimentSubmitted submitted{ExperimentId{id}, "restored", 0, plan.build()};
    submitted.restored = true;
    submitted.cancelled = cancelled;
    return submitted;
  }

  static WorkerHello hello(const std::string& name, const std::vector<std::string>& kinds,
                           std::uint32_t executors = 1) {
    WorkerHello message;
    message.name = name;
    message.host = "host-" + name;
    message.pid = 100;
    message.executors = executors;
    for (const std::string& kind : kinds) message.kinds.push_back({kind, 1});
    return message;
  }
  Effects connect(const std::string& name, const std::vector<std::string>& kinds,
                  std::uint32_t executors = 1) {
    return from(name, hello(name, kinds, executors));
  }
  // By default a worker's connection is called as the worker.
  Effects from(const std::string& peer, Message message, std::vector<ArtifactDigest> missing = {}) {
    return step(PeerMessage{PeerId{peer}, std::move(message), std::move(missing)});
  }
  Effects result(const std::string& peer, const LeaseId& lease, std::uint64_t duration_ms = 10) {
    ResultMessage message{lease, {}, ""};
    message.result.duration_ms = duration_ms;
    return from(peer, std::move(message));
  }
  Effects failure(const std::string& peer, const LeaseId& lease,
                  FailureClass failure_class = FailureClass::error) {
    JobFailure failure;
    failure.failure_class = failure_class;
    failure.message = "it broke";
    return from(peer, FailureMessage{lease, failure});
  }

  // The lease that the job was last given under, by job name; attempt 0: none.
  LeaseId lease(const std::string& job) const {
    const auto found = leases_.find(key_of(job));
    return found == leases_.end() ? LeaseId{key_of(job), 0} : found->second;
  }
  std::string state(const std::string& job) const {
    const auto view = core_.job(key_of(job));
    return view ? view->state : "unknown";
  }
  std::string worker_of(const std::string& job) const { return core_.job(key_of(job))->worker; }
  JobCounts counts(std::uint32_t id = 1) const { return core_.progress(ExperimentId{id}).counts; }
  // What the store would hold now, for a restart.
  std::vector<JobFact> stored() const {
    std::vector<JobFact> facts;
    for (const auto& [key, fact] : stored_) facts.push_back(fact);
    return facts;
  }
  std::size_t results_stored(const std::string& job) const {
    const auto found = results_.find(key_of(job));
    return found == results_.end() ? 0 : found->second;
  }

 private:
  static void append(Effects& all, Effects more) {
    std::move(more.facts.begin(), more.facts.end(), std::back_inserter(all.facts));
    std::move(more.sends.begin(), more.sends.end(), std::back_inserter(all.sends));
    std::move(more.changed.begin(), more.changed.end(), std::back_inserter(all.changed));
  }
  void remember(const Effects& effects) {
    for (const Fact& fact : effects.facts) {
      if (const auto* job = std::get_if<JobFact>(&fact)) stored_[job->job] = *job;
      if (const auto* result = std::get_if<ResultFact>(&fact)) ++results_[result->job];
    }
    for (const Send& send : effects.sends) {
      if (const auto* leases = std::get_if<SendLeases>(&send)) {
        for (const LeaseGrant& grant : leases->leases) leases_[grant.id.job] = grant.id;
      }
    }
  }

  Core core_;
  MonotonicMs now_{1'000};
  std::map<JobKey, LeaseId> leases_;
  std::map<JobKey, JobFact> stored_;
  std::map<JobKey, std::size_t> results_;
};

// --- reading effects ---

template <class T>
std::vector<T> messages_to(const Effects& effects, const std::string& peer) {
  std::vector<T> found;
  for (const Send& send : effects.sends) {
    const auto* to = std::get_if<SendTo>(&send);
    if (to == nullptr || to->peer.bytes != peer) continue;
    if (const auto* message = std::get_if<T>(&to->message)) found.push_back(*message);
  }
  return found;
}

inline std::vector<LeaseId> leases_to(const Effects& effects, const std::string& peer) {
  std::vector<LeaseId> found;
  for (const Send& send : effects.sends) {
    const auto* leases = std::get_if<SendLeases>(&send);
    if (leases == nullptr || leases->peer.bytes != peer) continue;
    for (const LeaseGrant& grant : leases->leases) found.push_back(grant.id);
  }
  return found;
}

template <class What>
std::size_t events_of(const Effects& effects) {
  return static_cast<std::size_t>(
      std::count_if(effects.facts.begin(), effects.facts.end(), [](const Fact& fact) {
        const auto* event = std::get_if<EventFact>(&fact);
        return event != nullptr && std::holds_alternative<What>(event->what);
      }));
}

template <class T>
std::size_t facts_of(const Effects& effects) {
  return static_cast<std::size_t>(
      std::count_if(effects.facts.begin(), effects.facts.end(),
                    [](const Fact& fact) { return std::holds_alternative<T>(fact); }));
}

}  // namespace prefgrid
