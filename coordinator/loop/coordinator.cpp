#include "coordinator/loop/coordinator.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include "common/limits.h"
#include "common/sha256.h"
#include "common/text.h"
#include "coordinator/loop/coordinator_impl.h"
#include "coordinator/loop/endpoints.h"

namespace prefgrid {
namespace {

constexpr std::size_t bytes_per_drain = 64 << 20;
constexpr std::size_t remembered_complaints = 1'024;
constexpr std::int64_t recovery_interval_ms = 250;
// A cycle that took longer than this (a huge plan, a slow disk) must not cost anybody a lease.
constexpr std::int64_t stall_ms = limits::lease_timeout_ms / 5;

bool is_ours_to_read(const Message& message) {
  return std::holds_alternative<WorkerHello>(message) ||
         std::holds_alternative<Heartbeat>(message) || std::holds_alternative<Progress>(message) ||
         std::holds_alternative<ResultMessage>(message) ||
         std::holds_alternative<FailureMessage>(message) ||
         std::holds_alternative<LeaseReturned>(message) ||
         std::holds_alternative<WorkerWaits>(message) || std::holds_alternative<Goodbye>(message) ||
         std::holds_alternative<Request>(message);
}

bool changes_something(const Request& request) {
  static constexpr std::array verbs{"submit", "cancel", "retry", "drain", "watch"};
  return std::find(verbs.begin(), verbs.end(), request.verb) != verbs.end();
}

// Known to be gone: only of a process on this machine can that be said.
bool is_gone(const WorkerView& worker, const WorkerHello& hello) {
  if (worker.host != hello.host || worker.host != this_host() || worker.pid == hello.pid) {
    return false;
  }
  return ::kill(static_cast<pid_t>(worker.pid), 0) != 0 && errno == ESRCH;
}

// A peer's name in a log line.
std::string name_of(const PeerId& peer) {
  return quoted(peer.bytes.substr(1, 8), 32);
}

}  // namespace

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

Coordinator::Coordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Coordinator::~Coordinator() = default;

Result<std::unique_ptr<Coordinator>> Coordinator::start(CoordinatorOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  PREFGRID_TRY(impl->try_endpoints());
  PREFGRID_TRY(impl->open());
  PREFGRID_TRY(impl->listen());
  impl->bulk->start();
  return std::unique_ptr<Coordinator>(new Coordinator(std::move(impl)));
}

void Coordinator::stop() {
  impl_->stopped = true;
  impl_->mailbox.wake();
}

void Coordinator::worker_gone(const std::string& name, const std::string& reason) {
  impl_->mailbox.post(WorkerGone{name, reason});
}

const std::vector<std::string>& Coordinator::control_endpoints() const {
  return impl_->sockets.endpoints();
}
const std::vector<std::string>& Coordinator::bulk_endpoints() const {
  return impl_->bulk->endpoints();
}

// An endpoint that cannot be had is refused before a store is made or touched.
Result<void> Coordinator::Impl::try_endpoints() {
  for (const ListenOn& endpoint : options.listen) {
    if (!is_local(endpoint.control) && !options.trust_network) {
      return invalid_input(endpoint.control +
                           " is open to other machines, and whoever reaches it may command this "
                           "coordinator: listen on 127.0.0.1, or say that the network is trusted "
                           "(--trust-network)");
    }
    PREFGRID_ASSIGN(const RouterSocket free, RouterSocket::bind(context, endpoint.control));
  }
  return {};
}

Result<void> Coordinator::Impl::open() {
  PREFGRID_ASSIGN(store, Store::open(options.store, options.holder));
  PREFGRID_ASSIGN(Restored restored,
                  restore(*store, options.planner, options.core, monotonic_now(), wall_now()));
  core = std::move(restored.core);
  book = std::move(restored.book);
  resolver = std::make_unique<LeaseResolver>(*store, book);
  batch.facts = std::move(restored.facts);
  if (batch.empty()) return {};
  return store->commit(std::exchange(batch, {}));
}

Result<void> Coordinator::Impl::listen() {
  PREFGRID_ASSIGN(const std::filesystem::path folder, socket_folder(store->folder()));
  PREFGRID_TRY(sockets.bind(context, "ipc://" + (folder / "control").string()));
  std::vector<std::string> bulk_endpoints{"ipc://" + (folder / "bulk").string()};
  for (const ListenOn& endpoint : options.listen) {
    PREFGRID_TRY(sockets.bind(context, endpoint.control));
    const std::string& bound = sockets.endpoints().back();
    bulk_endpoints.push_back(endpoint.bulk.empty() ? bound.substr(0, bound.rfind(':')) + ":*"
                                                   : endpoint.bulk);
  }
  PREFGRID_ASSIGN(
      bulk, BulkServer::bind(context, bulk_endpoints, *store, [this](const ArtifactDigest& digest) {
        mailbox.post(ArtifactComplete{digest});
      }));
  return store->holder().publish(sockets.endpoints()[0],
                                 sockets.endpoints().size() > 1 ? sockets.endpoints()[1] : "",
                                 bulk->endpoints()[0]);
}

Result<void> Coordinator::run() {
  impl_->last_cycle = monotonic_now();
  while (!impl_->stopped) {
    PREFGRID_ASSIGN(const bool worked, impl_->paused ? impl_->paused_cycle() : impl_->cycle());
    if (!worked) impl_->wait();
  }
  return {};
}

Result<bool> Coordinator::Impl::cycle() {
  if (store->out_of_space()) {  // the bulk server noticed
    pause();
    return true;
  }
  const MonotonicMs now = monotonic_now();
  keep_time(now);
  std::move(next_events.begin(), next_events.end(), std::back_inserter(events));
  next_events.clear();
  for (Event& event : mailbox.take()) events.push_back(std::move(event));
  std::size_t taken = 0;
  for (; !deferred.empty() && taken < limits::events_per_drain; ++taken) {
    auto [peer, message] = std::move(deferred.front());
    deferred.pop_front();
    take_message(std::move(peer), std::move(message));
  }
  for (const ReceivedFrame& received :
       sockets.receive(limits::events_per_drain - taken + 1, bytes_per_drain)) {
    ++taken;
    if (auto decoded = decode(received)) {
      take_message(std::move(decoded->first), std::move(decoded->second));
    }
  }
  const auto deadline = core.next_deadline();
  if (deadline && *deadline <= now) events.emplace_back(Tick{});
  const bool worked = taken > 0 || !events.empty();
  if (!events.empty()) {
    Effects effects = core.react(now, wall_now(), std::exchange(events, {}));
    batch.facts = std::move(effects.facts);
    sends = std::move(effects.sends);
    for (Watcher& watcher : watchers) {
      watcher.changed |= std::find(effects.changed.begin(), effects.changed.end(),
                                   watcher.experiment) != effects.changed.end();
    }
  }
  PREFGRID_TRY(commit_and_send());
  if (!paused) push_to_watchers(now);
  return worked;
}

// Facts, sync, then everything that tells somebody about them.
Result<void> Coordinator::Impl::commit_and_send() {
  if (!batch.empty()) {
    const auto committed = store->commit(std::exchange(batch, {}));
    if (!committed.ok()) {
      if (committed.error().code != ErrorCode::out_of_space) return committed;
      pause();
      return {};
    }
  }
  send_all();
  return {};
}

void Coordinator::Impl::pause() {
  spdlog::error("the disk of {} is full: nothing is committed until there is room",
                store->folder().string());
  paused = true;
  next_recovery = monotonic_now();
  for (Watcher& watcher : watchers) watcher.changed = true;
}

void Coordinator::Impl::resume() {
  spdlog::info("there is room on the disk of {} again: going on", store->folder().string());
  paused = false;
  next_events.emplace_back(LoopStalled{});
  for (Watcher& watcher : watchers) watcher.changed = true;
  send_all();
}

// The disk is full: heartbeats and questions are answered, everything else waits, and so do the
// core's clocks.
Result<bool> Coordinator::Impl::paused_cycle() {
  const MonotonicMs now = monotonic_now();
  if (now >= next_recovery) {
    next_recovery = now + recovery_interval_ms;
    PREFGRID_ASSIGN(const bool recovered, store->recover());
    if (recovered) {
      resume();
      return true;
    }
  }
  bool worked = false;
  const std::size_t room =
      limits::events_per_drain - std::min(deferred.size(), limits::events_per_drain);
  if (room > 0) {
    for (const ReceivedFrame& received : sockets.receive(room, bytes_per_drain)) {
      worked = true;
      auto decoded = decode(received);
      if (!decoded) continue;
      auto& [peer, message] = *decoded;
      const auto* const request = std::get_if<Request>(&message);
      if (request != nullptr && !changes_something(*request)) {
        answer_now(peer, *request);
      } else if (std::holds_alternative<Heartbeat>(message) ||
                 std::holds_alternative<WorkerWaits>(message)) {  // said again before long
        send(peer, Heartbeat{});
      } else {
        deferred.emplace_back(std::move(peer), std::move(message));
      }
    }
  }
  keep_time(now);
  push_to_watchers(now);
  return worked;
}

void Coordinator::Impl::keep_time(MonotonicMs now) {
  if (now - last_cycle > stall_ms) next_events.emplace_back(LoopStalled{});
  last_cycle = now;
  if (now - last_beat < options.holder.beat.count()) return;
  last_beat = now;
  store->holder().beat();
}

void Coordinator::Impl::wait() const {
  std::vector<int> descriptors{mailbox.poll_fd()};
  if (!paused || deferred.size() < limits::events_per_drain) {
    for (const int descriptor : sockets.poll_fds()) descriptors.push_back(descriptor);
  }
  const MonotonicMs now = monotonic_now();
  std::int64_t timeout = options.holder.beat.count();
  if (paused) {
    timeout = std::min(timeout, next_recovery - now);
  } else if (const auto deadline = core.next_deadline()) {
    timeout = std::min(timeout, *deadline - now);
  }
  for (const Watcher& watcher : watchers) {
    constexpr std::int64_t push_interval_ms = 100;
    if (watcher.changed) timeout = std::min(timeout, watcher.last_sent + push_interval_ms - now);
  }
  wait_readable(descriptors,
                std::chrono::milliseconds(std::clamp<std::int64_t>(timeout, 0, 60'000)));
}

std::optional<std::pair<PeerId, Message>> Coordinator::Impl::decode(const ReceivedFrame& received) {
  auto message = decode_message(received.frame);
  std::string problem;
  if (!message.ok()) {
    problem = message.error().message;
    if (message.error().code == ErrorCode::conflict) {
      send(received.peer, Refused{message.error().message});
    }
  } else if (!is_ours_to_read(*message)) {
    problem = "a message that only a coordinator sends";
  }
  if (problem.empty()) return std::pair{received.peer, *std::move(message)};
  ++bad_frames;
  if (complained.size() < remembered_complaints && complained.insert(received.peer.bytes).second) {
    spdlog::warn("a frame of peer {} was dropped (further ones are only counted): {}",
                 name_of(received.peer), problem);
  }
  return std::nullopt;
}

void Coordinator::Impl::take_message(PeerId peer, Message message) {
  if (auto* request = std::get_if<Request>(&message)) {
    take_request(std::move(peer), std::move(*request));
  } else if (auto* result = std::get_if<ResultMessage>(&message)) {
    take_result(std::move(peer), std::move(*result));
  } else if (auto* hello = std::get_if<WorkerHello>(&message)) {
    const auto holder = core.holder(hello->name);
    const bool gone = holder && is_gone(*holder, *hello);
    events.emplace_back(
        PeerMessage{.peer = std::move(peer), .message = std::move(message), .holder_gone = gone});
  } else {
    if (std::holds_alternative<WorkerWaits>(message)) {
      for (Watcher& watcher : watchers) watcher.changed = true;
    }
    events.emplace_back(PeerMessage{.peer = std::move(peer), .message = std::move(message)});
  }
}

// Which artefacts have not come yet is the core's to wait for; an artefact that contradicts its
// own digest, or a store that cannot tell, is the job's failure.
void Coordinator::Impl::take_result(PeerId peer, ResultMessage result) {
  PeerMessage event{.peer = std::move(peer), .message = Heartbeat{}};
  std::string problem;
  for (const ArtifactRef& artifact : result.result.artifacts) {
    if (artifact.inline_data) {
      if (digest_of(*artifact.inline_data) != artifact.digest ||
          artifact.inline_data->size() != artifact.size) {
        problem = "the artefact " + artifact.name + " arrived with another content than named";
      }
      continue;
    }
    const auto size = store->artifact_size(artifact.digest);
    if (!size.ok()) {
      problem = size.error().message;
    } else if (!*size) {
      event.missing_artifacts.push_back(artifact.digest);
    } else if (**size != artifact.size) {
      problem = "the artefact " + artifact.name + " has another size than named";
    }
  }
  if (problem.empty()) {
    event.message = std::move(result);
  } else {
    spdlog::warn("job {}: {}", result.lease.job.short_hex(), problem);
    event.message = FailureMessage{
        result.lease, JobFailure{FailureClass::error, problem, 0, std::move(result.log)}};
  }
  events.emplace_back(std::move(event));
}

}  // namespace prefgrid
