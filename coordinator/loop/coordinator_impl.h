// The loop's state; coordinator.cpp has the cycle, requests.cpp what clients ask, sending.cpp what
// goes out. For these three files only.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/messages.h"
#include "coordinator/loop/bulk_server.h"
#include "coordinator/loop/control_sockets.h"
#include "coordinator/loop/coordinator.h"
#include "coordinator/loop/lease_resolver.h"
#include "coordinator/loop/mailbox.h"

namespace prefgrid {

std::string this_host();

// A reply that waits for the batch of its request to be durable.
struct PendingReply {
  PeerId peer;
  std::uint64_t id = 0;
  std::function<Result<Value>()> make;
};

// A client that hears of each change of an experiment until that is finished.
struct Watcher {
  PeerId peer;
  std::uint64_t id = 0;
  ExperimentId experiment{};
  MonotonicMs last_sent{};
  bool changed = true;
};

struct Coordinator::Impl {
  CoordinatorOptions options;
  TransportContext context;
  std::unique_ptr<Store> store;
  Core core;
  ExperimentBook book;
  std::unique_ptr<LeaseResolver> resolver;
  ControlSockets sockets;
  Mailbox<Event> mailbox;  // from the bulk server and from worker_gone
  std::unique_ptr<BulkServer> bulk;
  std::atomic<bool> stopped{false};

  // Of the cycle that runs.
  std::vector<Event> events;
  StoreBatch batch;
  std::vector<Send> sends;
  std::vector<PendingReply> replies;
  std::vector<Event> next_events;  // what sending found out

  std::vector<Watcher> watchers;
  std::set<std::string> complained;  // peers whose bad frames were logged
  std::uint64_t bad_frames = 0;
  MonotonicMs last_beat{};
  MonotonicMs last_cycle{};

  // While the disk is full: replies and sends above stay, and what arrives waits here.
  bool paused = false;
  MonotonicMs next_recovery{};
  std::deque<std::pair<PeerId, Message>> deferred;

  explicit Impl(CoordinatorOptions given) : options(std::move(given)) {}

  // coordinator.cpp
  Result<void> try_endpoints();
  Result<void> open();
  Result<void> listen();
  Result<bool> cycle();  // whether anything happened
  Result<bool> paused_cycle();
  Result<void> commit_and_send();
  void pause();
  void resume();
  void wait() const;
  std::optional<std::pair<PeerId, Message>> decode(const ReceivedFrame& received);
  void take_message(PeerId peer, Message message);
  void take_result(PeerId peer, ResultMessage result);
  void keep_time(MonotonicMs now);

  // requests.cpp
  bool knows(ExperimentId id) const;
  bool waits_for_room() const;
  Views views(const PeerId* peer) const;
  void take_request(PeerId peer, Request request);
  void answer_now(const PeerId& peer, const Request& request);
  void watch(PeerId peer, const Request& request);
  void push_to_watchers(MonotonicMs now);
  Result<std::function<Result<Value>()>> submit(const ValueMap& arguments);
  void amend(ExperimentRecord record);
  Result<std::function<Result<Value>()>> command(const std::string& verb,
                                                 const ValueMap& arguments);

  // sending.cpp
  void send_all();
  bool send(const PeerId& peer, const Message& message);
  void send_leases(const SendLeases& leases);
  void complete_welcome(const PeerId& peer, Welcome& welcome) const;
};

}  // namespace prefgrid
