#include "tests/simulation/world.h"

#include <algorithm>
#include <set>

namespace prefgrid::simulation {
namespace {

constexpr std::int64_t faulty_ms = 120'000;
constexpr std::int64_t patience_ms = 3'600'000;  // for everything to end once the faults stop
constexpr std::int64_t never = std::int64_t{1} << 60;

JobKey pool_key(std::uint64_t seed, std::size_t job) {
  JobKey key;
  RandomStream bits(seed, "job " + std::to_string(job));
  for (std::uint8_t& byte : key.bytes) byte = static_cast<std::uint8_t>(bits.bits());
  return key;
}

}  // namespace

World::World(Options options) : options_(options), random_(options.seed, "simulation") {
  drop_per_mille_ = random_.below(4) == 0 ? 0 : random_.below(80);
  repeat_per_mille_ = random_.below(60);
  delay_ms_ = 1 + static_cast<std::int64_t>(random_.below(500));
  crash_per_mille_ = random_.below(3) == 0 ? 0 : 1 + random_.below(15);
  fault_every_ms_ = 500 + static_cast<std::int64_t>(random_.below(8'000));
  next_fault_ = fault_every_ms_;
  make_jobs();
  make_agents();
  for (std::uint32_t id = 1; id <= 1 + random_.below(3); ++id) plans_[id] = make_plan();
}

void World::make_jobs() {
  kinds_ = {{"train", 1}, {"adapt", 2}, {"evaluate", 1}};
  const std::size_t count = 10 + random_.below(40);
  for (std::size_t i = 0; i < count; ++i) {
    PoolJob job;
    job.key = pool_key(options_.seed, i);
    for (std::size_t n = random_.below(3); n > 0 && i > 0; --n) {
      const std::size_t input = random_.below(i);
      if (std::find(job.inputs.begin(), job.inputs.end(), input) == job.inputs.end()) {
        job.inputs.push_back(input);
      }
    }
    const std::uint64_t nature = random_.below(100);
    job.nature.kind = nature < 4   ? Nature::Kind::kills_worker
                      : nature < 8 ? Nature::Kind::fails
                                   : Nature::Kind::good;
    job.nature.duration_ms =
        static_cast<std::int64_t>(random_.below(2) == 0 ? random_.below(50) : random_.below(4'000));
    job.nature.has_artifact = random_.below(3) == 0;
    job.kind = static_cast<std::uint16_t>(random_.below(kinds_.size()));
    job.deterministic = random_.below(6) != 0;
    job.affinity = random_.below(4);
    pool_index_[job.key] = i;
    pool_.push_back(std::move(job));
  }
}

void World::make_agents() {
  const std::size_t count = 2 + random_.below(4);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<KindVersion> kinds = kinds_;
    if (i > 0 && random_.below(3) == 0) kinds.pop_back();
    if (i > 0 && random_.below(5) == 0) kinds[0].version = 9;
    FakeAgent::Surroundings around{
        random_, [this](const JobKey& key) { return pool_job(key).nature; },
        [this](const std::string& peer, Message message) {
          post(true, peer, Content(std::in_place_index<0>, std::move(message)));
        },
        [this](ArtifactDigest digest) {
          uploads_[time_ + 1 + static_cast<std::int64_t>(random_.below(2'000))].push_back(digest);
        },
        faults_};
    agents_.push_back(std::make_unique<FakeAgent>("worker " + std::to_string(i),
                                                  static_cast<std::uint32_t>(1 + random_.below(3)),
                                                  kinds, std::move(around)));
  }
}

std::shared_ptr<const CorePlan> World::make_plan() {
  std::set<std::size_t> members;
  const std::uint64_t share = 30 + random_.below(71);
  for (std::size_t i = pool_.size(); i-- > 0;) {
    if (!members.contains(i) && random_.below(100) >= share) continue;
    members.insert(i);
    members.insert(pool_[i].inputs.begin(), pool_[i].inputs.end());
  }
  CorePlan plan;
  plan.kinds = kinds_;
  plan.stages = {"train", "adapt", "evaluate"};
  std::map<std::size_t, std::uint32_t> places;
  for (const std::size_t i : members) {
    CoreJob job;
    job.key = pool_[i].key;
    job.affinity = pool_[i].affinity;
    job.kind = job.stage = pool_[i].kind;
    job.deterministic = pool_[i].deterministic;
    job.first_dependency = static_cast<std::uint32_t>(plan.dependencies.size());
    job.dependency_count = static_cast<std::uint32_t>(pool_[i].inputs.size());
    for (const std::size_t input : pool_[i].inputs) plan.dependencies.push_back(places.at(input));
    places[i] = static_cast<std::uint32_t>(plan.jobs.size());
    plan.jobs.push_back(job);
  }
  return std::make_shared<CorePlan>(std::move(plan));
}

bool World::doomed(std::size_t job) const {
  return pool_[job].nature.kind != Nature::Kind::good ||
         std::any_of(pool_[job].inputs.begin(), pool_[job].inputs.end(),
                     [this](std::size_t input) { return doomed(input); });
}

void World::trace(std::uint64_t value) {
  outcome_.trace_hash = (outcome_.trace_hash ^ value) * 0x100000001b3ull;
}

void World::violate(const std::string& what) {
  if (outcome_.violation.empty()) {
    outcome_.violation = "at " + std::to_string(time_) + " ms: " + what;
  }
}

// --- the network ---

void World::post(bool to_coordinator, const std::string& peer, Content content) {
  const std::uint64_t copies = !faults_                    ? 1
                               : chance(drop_per_mille_)   ? 0
                               : chance(repeat_per_mille_) ? 2
                                                           : 1;
  if (copies == 0) ++outcome_.lost_messages;
  for (std::uint64_t i = 0; i < copies; ++i) {
    const std::int64_t delay =
        faults_
            ? 1 + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(delay_ms_)))
            : 1;
    packets_.push({time_ + delay, next_packet_++, to_coordinator, peer, content});
  }
}

void World::deliver(const Packet& packet) {
  trace(packet.number * 31 + packet.content.index());
  if (packet.to_coordinator) {
    if (!core_) return;
    PeerMessage event{PeerId{packet.peer}, std::get<Message>(packet.content)};
    if (const auto* hello = std::get_if<WorkerHello>(&event.message)) {
      const auto holder = core_->holder(hello->name);
      for (const auto& agent : agents_) {
        if (!holder || agent->name() != hello->name) continue;
        const bool gone = !agent->alive() || agent->pid() != holder->pid;
        event.holder_gone = gone && random_.below(2) == 0;
      }
    }
    inbox_.push_back(std::move(event));
    wake_at_ = std::min(wake_at_, time_ + static_cast<std::int64_t>(random_.below(20)));
    return;
  }
  for (const auto& agent : agents_) {
    if (!agent->alive() || agent->peer() != packet.peer) continue;
    if (const auto* message = std::get_if<Message>(&packet.content)) {
      agent->receive(*message, time_);
    } else {
      agent->receive(std::get<std::vector<LeaseGrant>>(packet.content), time_);
    }
  }
}

// --- faults ---

void World::forge_message() {
  // A result of another store's life, and nonsense about an attempt that exists.
  const PoolJob& job = pool_[random_.below(pool_.size())];
  const JobFact* fact = store_.job(job.key);
  const LeaseId lease{job.key,
                      (fact ? fact->attempt : 0) + 1 + static_cast<Attempt>(random_.below(1'000))};
  ResultMessage message{lease, {}, ""};
  message.result.metrics.push_back(Metric{"value", {}, -1, 1, 0});
  const std::string peer = agents_[random_.below(agents_.size())]->peer();
  switch (random_.below(4)) {
    case 0:
      post(true, peer, Message(LeaseReturned{lease}));
      break;
    case 1:
      post(true, peer, Message(FailureMessage{lease, {}}));
      break;
    default:
      post(true, peer, Message(std::move(message)));
  }
}

void World::play_fault() {
  FakeAgent& agent = *agents_[random_.below(agents_.size())];
  const std::int64_t a_while = static_cast<std::int64_t>(random_.below(25'000));
  switch (random_.below(9)) {
    case 8:
      agent.run_out_of_room(time_, time_ + a_while);
      break;
    case 0:
    case 1:
      agent.kill();
      ++outcome_.worker_kills;
      break;
    case 2:
      agent.hang(time_ + a_while);
      break;
    case 3:
      if (agent.alive()) agent.leave(time_);
      break;
    case 4:
      if (core_ && crash_per_mille_ > 0) crash_coordinator();
      break;
    case 5:
      stopped_until_ = time_ + a_while;
      break;
    case 6:
      if (core_ && random_.below(3) == 0) {
        const auto ids = core_->experiments();
        if (!ids.empty()) {
          const ExperimentId id = ids[random_.below(ids.size())];
          const bool revive = core_->progress(id).cancelled;
          if (revive) inbox_.push_back(ReviveExperiment{id, 1});
          if (!revive) inbox_.push_back(CancelExperiment{id});
          cancelled_now_[id] = !revive;
        }
      }
      if (core_) inbox_.push_back(RetryFailed{ExperimentId{1}});
      break;
    default:
      forge_message();
  }
}

// --- the coordinator's process ---

void World::submit(std::uint32_t id) {
  ExperimentSubmitted event{ExperimentId{id}, "experiment " + std::to_string(id),
                            static_cast<std::int32_t>(id % 2), plans_.at(id)};
  submitted_now_.push_back(event);
  inbox_.push_back(std::move(event));
}

void World::coordinator_loop() {
  for (auto& event : inbox_) {
    auto* message = std::get_if<PeerMessage>(&event);
    auto* result = message ? std::get_if<ResultMessage>(&message->message) : nullptr;
    if (result == nullptr) continue;
    for (const ArtifactRef& artifact : result->result.artifacts) {
      if (!store_.artifacts.contains(artifact.digest)) {
        message->missing_artifacts.push_back(artifact.digest);
      }
    }
  }
  for (const auto& [id, plan] : plans_) {
    const bool known = core_->knows(ExperimentId{id});
    if (!known && submitted_now_.empty() && (!faults_ || random_.below(20) == 0)) submit(id);
  }
  Effects effects =
      core_->react(core_now(), WallMs{static_cast<std::int64_t>(random_.bits() >> 20)},
                   std::exchange(inbox_, {}));
  ++outcome_.reactions;
  if (options_.check_invariants) core_->check_invariants();
  CrashPoint crash = CrashPoint::none;
  if (faults_ && chance(crash_per_mille_)) {
    crash = static_cast<CrashPoint>(1 + random_.below(3));
  }
  trace(effects.facts.size() * 7 + effects.sends.size());
  apply(std::move(effects), crash);
}

void World::apply(Effects effects, CrashPoint crash) {
  const std::size_t half = random_.below(effects.sends.size() + 1);
  const std::size_t sent = crash == CrashPoint::none            ? effects.sends.size()
                           : crash == CrashPoint::while_sending ? half
                                                                : 0;
  if (options_.send_before_persist) send_out(effects.sends, effects.sends.size());
  if (crash != CrashPoint::before_persist) persist(effects.facts);
  if (!options_.send_before_persist) send_out(effects.sends, sent);
  submitted_now_.clear();
  cancelled_now_.clear();
  if (crash != CrashPoint::none) crash_coordinator();
}

void World::persist(const std::vector<Fact>& facts) {
  const std::string problem = store_.write(facts);
  if (!problem.empty()) violate(problem);
  for (ExperimentSubmitted& submitted : submitted_now_) {
    submitted.restored = true;
    store_.experiments.push_back(submitted);
  }
  for (ExperimentSubmitted& experiment : store_.experiments) {
    const auto changed = cancelled_now_.find(experiment.id);
    if (changed == cancelled_now_.end()) continue;
    experiment.cancelled = changed->second;
    if (!changed->second) experiment.priority = 1;
  }
}

void World::send_out(const std::vector<Send>& sends, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto* leases = std::get_if<SendLeases>(&sends[i])) {
      check_grants(*leases);
      post(false, leases->peer.bytes, leases->leases);
      continue;
    }
    const auto& to = std::get<SendTo>(sends[i]);
    if (const auto* settled = std::get_if<Settled>(&to.message)) check_settled(settled->lease);
    post(false, to.peer.bytes, to.message);
  }
}

void World::crash_coordinator() {
  ++outcome_.coordinator_crashes;
  core_.reset();
  inbox_.clear();
  submitted_now_.clear();
  cancelled_now_.clear();
  down_until_ = time_ + static_cast<std::int64_t>(random_.below(20'000));
}

void World::restart_coordinator() {
  clock_origin_ = time_ - static_cast<std::int64_t>(random_.below(1'000'000));
  core_.emplace();
  wake_at_ = time_;
  const std::vector<JobFact> jobs = store_.jobs();
  const std::size_t cut = random_.below(jobs.size() + 1);
  const auto middle = jobs.begin() + static_cast<std::ptrdiff_t>(cut);
  std::vector<Event> events;
  events.push_back(JobsRestored{{jobs.begin(), middle}});
  events.push_back(JobsRestored{{middle, jobs.end()}});
  for (const ExperimentSubmitted& experiment : store_.experiments) events.push_back(experiment);
  const Effects effects = core_->react(core_now(), WallMs{0}, std::move(events));
  if (options_.check_invariants) core_->check_invariants();
  apply(effects, CrashPoint::none);
  check_cancelled();
}

// --- time ---

bool World::quiet() const {
  if (!core_ || !inbox_.empty()) return false;
  for (const auto& [id, plan] : plans_) {
    if (!core_->knows(ExperimentId{id}) || !core_->finished(ExperimentId{id})) return false;
  }
  return std::all_of(agents_.begin(), agents_.end(),
                     [](const auto& agent) { return agent->idle(); });
}

void World::advance() {
  std::int64_t next = std::max(wake_at_, stopped_until_);
  if (!core_) next = std::max(down_until_, stopped_until_);
  if (core_ && core_->next_deadline()) {
    const std::int64_t deadline =
        static_cast<std::int64_t>(*core_->next_deadline()) + clock_origin_;
    next = std::min(next, std::max(deadline, stopped_until_));
  }
  if (!packets_.empty()) next = std::min(next, packets_.top().at);
  if (!uploads_.empty()) next = std::min(next, uploads_.begin()->first);
  for (const auto& agent : agents_) {
    next = std::min(next, agent->alive() ? agent->next_time() : time_ + 1'000);
  }
  if (faults_) next = std::min(next, next_fault_);
  time_ = std::max(time_, next);
  while (!packets_.empty() && packets_.top().at <= time_) {
    const Packet packet = packets_.top();
    packets_.pop();
    deliver(packet);
  }
  while (!uploads_.empty() && uploads_.begin()->first <= time_) {
    for (const ArtifactDigest& digest : uploads_.begin()->second) {
      store_.artifacts.insert(digest);
      if (core_) inbox_.push_back(ArtifactComplete{digest});
    }
    wake_at_ = std::min(wake_at_, time_);
    uploads_.erase(uploads_.begin());
  }
  for (const auto& agent : agents_) {
    if (!agent->alive() && random_.below(3) == 0) agent->start(time_);
    agent->work(time_);
  }
  if (faults_ && next_fault_ <= time_) {
    next_fault_ =
        time_ + 1 +
        static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(2 * fault_every_ms_)));
    play_fault();
  }
  if (time_ < stopped_until_) return;
  if (!core_ && time_ >= down_until_) restart_coordinator();
  if (!core_) return;
  const auto deadline = core_->next_deadline();
  if (wake_at_ <= time_ || (deadline && *deadline <= core_now())) {
    wake_at_ = inbox_.empty() && !faults_ && !plans_.empty() ? time_ + 1'000 : never;
    if (faults_) wake_at_ = time_ + 1'000;
    coordinator_loop();
  }
}

void World::run_until_quiet(std::int64_t deadline) {
  while (!quiet() && outcome_.violation.empty()) {
    if (time_ > deadline) {
      violate("the faults stopped long ago and not everything came to an end");
      for (const ExperimentId id : core_ ? core_->experiments() : std::vector<ExperimentId>{}) {
        for (const CoreJob& job : plans_.at(static_cast<std::uint32_t>(id))->jobs) {
          const std::string state = core_->job(job.key)->state;
          if (state == "done" || state == "quarantined" || state == "blocked") continue;
          outcome_.violation += "; " + job.key.short_hex() + ": " + core_->why_waiting(job.key);
        }
      }
      return;
    }
    advance();
  }
}

Outcome World::run() {
  restart_coordinator();
  for (const auto& agent : agents_) agent->start(time_);
  while (time_ < faulty_ms && outcome_.violation.empty()) advance();
  faults_ = false;
  stopped_until_ = std::min(stopped_until_, time_);
  down_until_ = std::min(down_until_, time_);
  run_until_quiet(time_ + patience_ms);
  if (outcome_.violation.empty()) check_end(false);
  // Good jobs that the faults condemned succeed if asked again, once, whatever the bad ones do to
  // the workers: a job that kills its worker is charged for that with its neighbours once at most.
  if (outcome_.violation.empty()) {
    for (const auto& [id, plan] : plans_) inbox_.push_back(RetryFailed{ExperimentId{id}});
    wake_at_ = time_;
    run_until_quiet(time_ + patience_ms);
    if (outcome_.violation.empty()) check_end(true);
  }
  outcome_.jobs_done = store_.results();
  return outcome_;
}

Outcome simulate(const Options& options) {
  return World(options).run();
}

}  // namespace prefgrid::simulation
