// A coordinator that does what the test says, over real sockets: control and bulk. Heartbeats are
// answered and artefacts served while the test waits for a message. Everything waits for events;
// a wait that takes longer than `patience` fails the test.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/limits.h"
#include "common/messages.h"
#include "common/sha256.h"
#include "common/transport.h"

namespace prefgrid {

class ScriptedCoordinator {
 public:
  static constexpr std::chrono::seconds patience{30};

  explicit ScriptedCoordinator(std::string folder) : folder_(std::move(folder)) { start(); }

  std::string endpoint() const { return "ipc://" + folder_ + "/control"; }
  std::string bulk_endpoint() const { return "ipc://" + folder_ + "/bulk"; }

  void start() {
    auto control = RouterSocket::bind(context_, endpoint());
    auto bulk = RouterSocket::bind(context_, bulk_endpoint());
    REQUIRE_MESSAGE(control.ok(), (control ? "" : control.error().message));
    REQUIRE_MESSAGE(bulk.ok(), (bulk ? "" : bulk.error().message));
    control_.emplace(*std::move(control));
    bulk_.emplace(*std::move(bulk));
  }
  // As a crash would: what is in flight, half-uploaded or not yet read is lost.
  void stop() {
    control_.reset();
    bulk_.reset();
    inbox.clear();
    welcomed_ = false;
    partial_.clear();
  }

  ArtifactRef add_artifact(const std::string& name, const std::string& content) {
    const ArtifactRef artifact{name, digest_of(content), content.size(), std::nullopt};
    stored[artifact.digest] = content;
    return artifact;
  }

  void send(const Message& message) {
    const bool queued = control_->try_send(peer, encode(message));
    CHECK(queued);
  }

  // The next message of that type; others before it are kept.
  template <class T>
  T expect() {
    std::optional<T> found;
    wait_until([&] {
      for (auto message = inbox.begin(); message != inbox.end(); ++message) {
        if (auto* wanted = std::get_if<T>(&*message)) {
          found = std::move(*wanted);
          inbox.erase(message);
          return true;
        }
      }
      return false;
    });
    REQUIRE(found.has_value());
    return *std::move(found);
  }
  // Hello and welcome.
  WorkerHello join(std::vector<LeaseId> dropped = {}) {
    WorkerHello hello = expect<WorkerHello>();
    send(Welcome{"test", bulk_endpoint(), 100, std::move(dropped)});
    welcomed_ = true;
    return hello;
  }

  void wait_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!done()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      REQUIRE_MESSAGE(left.count() > 0, "waited too long for the agent");
      if (pump()) continue;
      wait_readable({control_->poll_fd(), bulk_->poll_fd()}, left);
    }
  }

  std::deque<Message> inbox;  // heartbeats are not kept
  PeerId peer;                // of the last message
  std::map<ArtifactDigest, std::string> stored;
  int gets = 0;
  std::size_t puts = 0;
  // Called with each chunk that arrives; false: lose it.
  std::function<bool(const BulkPut&)> accept_put = [](const BulkPut&) { return true; };

 private:
  bool pump() {
    bool busy = false;
    while (auto frame = control_->try_receive()) {
      busy = true;
      auto message = decode_message(frame->frame);
      REQUIRE(message.ok());
      peer = frame->peer;
      if (std::holds_alternative<Heartbeat>(*message)) {
        if (welcomed_) control_->try_send(peer, encode(Message(Heartbeat{})));
      } else if (welcomed_ && std::holds_alternative<WorkerHello>(*message)) {
        // On a busy machine the agent may think us silent.
        control_->try_send(peer, encode(Message(Welcome{"test", bulk_endpoint(), 100, {}})));
      } else {
        inbox.push_back(*std::move(message));
      }
    }
    while (auto frame = bulk_->try_receive()) {
      busy = true;
      const auto message = decode_bulk(frame->frame);
      REQUIRE(message.ok());
      if (const auto* get = std::get_if<BulkGet>(&*message)) serve(frame->peer, *get);
      if (const auto* put = std::get_if<BulkPut>(&*message)) take(frame->peer, *put);
    }
    return busy;
  }
  void serve(const PeerId& to, const BulkGet& get) {
    gets += 1;
    BulkChunk chunk{get.digest, 0, get.offset, "", ""};
    const auto found = stored.find(get.digest);
    if (found == stored.end()) {
      chunk.problem = "no such artefact";
      bulk_->try_send(to, encode(BulkMessage(chunk)));
      return;
    }
    chunk.size = found->second.size();
    for (std::uint32_t i = 0; i < get.credit && chunk.offset < chunk.size; ++i) {
      chunk.data = found->second.substr(chunk.offset, limits::chunk_bytes);
      bulk_->try_send(to, encode(BulkMessage(chunk)));
      chunk.offset += chunk.data.size();
    }
  }
  void take(const PeerId& from, const BulkPut& put) {
    puts += 1;
    if (!accept_put(put)) return;
    std::string& content = partial_[put.digest];
    if (put.offset == content.size()) content += put.data;
    const bool complete = content.size() == put.size;
    if (complete) {
      CHECK(digest_of(content) == put.digest);
      stored[put.digest] = content;
    }
    bulk_->try_send(from,
                    encode(BulkMessage(BulkPutAck{put.digest, content.size(), complete, ""})));
  }

  std::string folder_;
  TransportContext context_;
  std::optional<RouterSocket> control_;
  bool welcomed_ = false;  // a stranger's heartbeat is not answered
  std::optional<RouterSocket> bulk_;
  std::map<ArtifactDigest, std::string> partial_;
};

}  // namespace prefgrid
