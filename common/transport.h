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

// A peer of a RouterSocket, as ZeroMQ names it. Random per DealerSocket, kept over its
// reconnections: never a worker's identity.
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
  // Readable while a message may be waiting: until a try_receive has said nullopt. Level-triggered
  // (unlike ZMQ_FD), so that a loop may stop in the middle of a drain and send before it waits. A
  // wake-up without a message happens.
  int poll_fd() const;

 private:
  RouterSocket();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class DealerSocket {
 public:
  // Connects lazily and reconnects by itself; what is sent meanwhile waits in the queue. What was
  // in flight when a connection broke is lost, as is what is unsent when the socket goes: only an
  // answer shows that a message arrived.
  static Result<DealerSocket> connect(TransportContext& context, const std::string& endpoint);
  DealerSocket(DealerSocket&&) noexcept;
  DealerSocket& operator=(DealerSocket&&) noexcept;
  ~DealerSocket();

  std::optional<std::string> try_receive();
  bool try_send(const std::string& frame);  // false: the queue is full
  int poll_fd() const;                      // as the router's

 private:
  DealerSocket();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Waits until one of the descriptors is readable (or closed by the other side), the time is up, or
// a signal has arrived; returns the readable ones' indices: none in the last two cases. No timeout
// waits for ever.
std::vector<std::size_t> wait_readable(const std::vector<int>& descriptors,
                                       std::optional<std::chrono::milliseconds> timeout);

}  // namespace prefgrid
