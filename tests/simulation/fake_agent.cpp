#include "tests/simulation/fake_agent.h"

#include <algorithm>
#include <utility>

#include "tests/simulation/fake_store.h"

namespace prefgrid::simulation {
namespace {

constexpr std::int64_t beat_ms = limits::heartbeat_ms;
constexpr std::int64_t silent_ms = 3 * beat_ms;
constexpr std::int64_t resend_ms = 4 * beat_ms;
constexpr std::int64_t never = std::int64_t{1} << 60;

}  // namespace

FakeAgent::FakeAgent(std::string name, std::uint32_t executors, std::vector<KindVersion> kinds,
                     Surroundings around)
    : name_(std::move(name)),
      executors_(executors),
      kinds_(std::move(kinds)),
      around_(std::move(around)) {}

void FakeAgent::start(std::int64_t now) {
  kill();
  alive_ = true;
  peer_ = name_ + "#" + std::to_string(++pid_);
  hung_until_ = no_room_until_ = 0;
  say_hello(now);
}

void FakeAgent::kill() {
  alive_ = false;
  queue_.clear();
  running_.clear();
  unsettled_.clear();
}

void FakeAgent::leave(std::int64_t) {
  for (const LeaseId& lease : queue_) around_.send(peer_, LeaseReturned{lease});
  for (const Running& running : running_) around_.send(peer_, LeaseReturned{running.lease});
  if (around_.random.below(2) == 0) around_.send(peer_, Goodbye{});
  kill();
}

void FakeAgent::run_out_of_room(std::int64_t now, std::int64_t until) {
  if (!alive_) return;
  no_room_until_ = until;
  next_beat_ = now;
  for (const LeaseId& lease : std::exchange(queue_, {})) around_.send(peer_, LeaseReturned{lease});
}

void FakeAgent::say_hello(std::int64_t now) {
  WorkerHello hello;
  hello.name = name_;
  hello.host = host();
  hello.pid = pid_;
  hello.executors = executors_;
  hello.kinds = kinds_;
  hello.held.assign(queue_.begin(), queue_.end());
  for (const Running& running : running_) hello.held.push_back(running.lease);
  for (const auto& [lease, unsettled] : unsettled_) hello.held.push_back(lease);
  welcomed_ = false;
  last_heard_ = now;
  next_beat_ = now + beat_ms;
  around_.send(peer_, std::move(hello));
}

bool FakeAgent::holds(const LeaseId& lease) const {
  return std::find(queue_.begin(), queue_.end(), lease) != queue_.end() ||
         unsettled_.contains(lease) ||
         std::any_of(running_.begin(), running_.end(),
                     [&lease](const Running& r) { return r.lease == lease; });
}

void FakeAgent::forget(const LeaseId& lease) {
  std::erase(queue_, lease);
  std::erase_if(running_, [&lease](const Running& r) { return r.lease == lease; });
}

void FakeAgent::receive(const Message& message, std::int64_t now) {
  last_heard_ = now;
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    welcomed_ = true;
    for (const LeaseId& lease : welcome->dropped) forget(lease);
  } else if (std::holds_alternative<Refused>(message)) {
    kill();
  } else if (const auto* settled = std::get_if<Settled>(&message)) {
    unsettled_.erase(settled->lease);
  } else if (const auto* cancel = std::get_if<CancelLease>(&message)) {
    forget(cancel->lease);
  }
}

void FakeAgent::receive(const std::vector<LeaseGrant>& grants, std::int64_t now) {
  last_heard_ = now;
  for (const LeaseGrant& grant : grants) {
    if (holds(grant.id)) continue;
    if (now < no_room_until_) {
      around_.send(peer_, LeaseReturned{grant.id});
    } else {
      queue_.push_back(grant.id);
    }
  }
}

void FakeAgent::finish(const LeaseId& lease, std::int64_t now) {
  const Nature nature = around_.nature(lease.job);
  if (nature.kind == Nature::Kind::kills_worker) {
    kill();
    return;
  }
  const bool bad_luck = around_.faults && around_.random.below(100) < 8;
  if (nature.kind == Nature::Kind::fails || bad_luck) {
    JobFailure failure;
    failure.failure_class = static_cast<FailureClass>(
        std::array{0, 1, 2, 4, 5}[around_.random.below(bad_luck ? 5 : 4)]);
    failure.message = "failed in the simulation";
    unsettled_[lease] = {FailureMessage{lease, failure}, now};
    return;
  }
  ResultMessage message{lease, {}, ""};
  message.result.metrics.push_back(Metric{"value", {}, true_value(lease.job), 1, 0});
  message.result.duration_ms = static_cast<std::uint64_t>(nature.duration_ms);
  if (nature.has_artifact) {
    const ArtifactDigest digest{lease.job.bytes};
    message.result.artifacts.push_back(ArtifactRef{"model", digest, 1 << 20, {}});
    around_.upload(digest);
  }
  produced_.insert(lease);
  unsettled_[lease] = {std::move(message), now};
}

void FakeAgent::work(std::int64_t now) {
  if (!alive_ || now < hung_until_) return;
  std::vector<LeaseId> ended;
  for (const Running& running : running_) {
    if (running.ends <= now) ended.push_back(running.lease);
  }
  for (const LeaseId& lease : ended) {
    forget(lease);
    if (now < no_room_until_) {
      around_.send(peer_, LeaseReturned{lease});
      continue;
    }
    finish(lease, now);
    if (!alive_) return;
  }
  while (running_.size() < executors_ && !queue_.empty()) {
    const LeaseId lease = queue_.front();
    queue_.pop_front();
    running_.push_back({lease, now + around_.nature(lease.job).duration_ms});
    if (around_.random.below(2) == 0) around_.send(peer_, Progress{lease, 1, 2, {}});
  }
  for (auto& [lease, unsettled] : unsettled_) {
    if (unsettled.next_send > now) continue;
    around_.send(peer_, unsettled.message);
    unsettled.next_send = now + resend_ms;
  }
  if (now - last_heard_ >= silent_ms || (!welcomed_ && next_beat_ <= now)) {
    say_hello(now);
  } else if (next_beat_ <= now) {
    if (now < no_room_until_) {
      around_.send(peer_, WorkerWaits{"no room"});
    } else {
      around_.send(peer_, Heartbeat{});
    }
    next_beat_ = now + beat_ms;
  }
}

std::int64_t FakeAgent::next_time() const {
  if (!alive_) return never;
  std::int64_t next = std::min(next_beat_, last_heard_ + silent_ms);
  for (const Running& running : running_) next = std::min(next, running.ends);
  for (const auto& [lease, unsettled] : unsettled_) next = std::min(next, unsettled.next_send);
  if (running_.size() < executors_ && !queue_.empty()) next = 0;
  return std::max(next, hung_until_);
}

}  // namespace prefgrid::simulation
