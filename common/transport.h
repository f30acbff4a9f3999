// ZeroMQ, wrapped: the only file pair that includes cppzmq, where its exceptions end.
// A socket belongs to the thread that made it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"

namespace prefgrid {

// A peer of a RouterSocket, as ZeroMQ names it. Random per process: never a worker's identity.
struct PeerId {
  std::string bytes;
  auto operator<=>(const PeerId&) const = default;
};

struct ReceivedFrame {
  PeerId peer;
  std::string frame;
};

// One per process; sockets must not outlive it.
class TransportContext {
 public:
  TransportContext();
  ~TransportContext();
  TransportContext(const TransportContext&) = delete;
  TransportContext& operator=(const TransportContext&) = delete;

 private:
  friend class RouterSocket;
  friend class DealerSocket;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class RouterSocket {
 public:
  // Port 0 or "*" picks a free one; endpoint() then names it. An address in use is an error that
  // says so. ipc files left by a dead process are replaced.
  static Result<RouterSocket> bind(TransportContext& context, const std::string& endpoint);
  RouterSocket(RouterSocket&&) noexcept;
  RouterSocket& operator=(RouterSocket&&) noexcept;
  ~RouterSocket();

  const std::string& endpoint() const;
  // Nothing waiting: nullopt. Never blocks.
  std::optional<ReceivedFrame> try_receive();
  // False: the peer is gone or its queue is full (router_mandatory, never blocks). The caller's
  // protocol must survive that: acknowledgements and retries.
  bool try_send(const PeerId& peer, const std::string& frame);
  int poll_fd() const;  // edge-triggered: drain with try_receive after every wake-up

 private:
  RouterSocket();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class DealerSocket {
 public:
  // Connects lazily and reconnects by itself.
  static Result<DealerSocket> connect(TransportContext& context, const std::string& endpoint);
  DealerSocket(DealerSocket&&) noexcept;
  DealerSocket& operator=(DealerSocket&&) noexcept;
  ~DealerSocket();

  std::optional<std::string> try_receive();
  bool try_send(const std::string& frame);
  int poll_fd() const;

 private:
  DealerSocket();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Waits until one of the descriptors is readable or the time is up; returns the readable ones'
// indices. For ZeroMQ descriptors see poll_fd: call try_receive first, then wait.
std::vector<std::size_t> wait_readable(const std::vector<int>& descriptors,
                                       std::optional<std::chrono::milliseconds> timeout);

}  // namespace prefgrid
