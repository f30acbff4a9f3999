// The control endpoints as one: peers of all sockets under one kind of PeerId. Owned by the loop.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/transport.h"

namespace prefgrid {

class ControlSockets {
 public:
  Result<void> bind(TransportContext& context, const std::string& endpoint);

  // As bound, in the order of the calls.
  const std::vector<std::string>& endpoints() const { return endpoints_; }
  // Which endpoint the peer uses.
  std::size_t endpoint_of(const PeerId& peer) const;

  // What has arrived, at most so many frames and about so many bytes; a peer that floods one
  // socket does not starve the others.
  std::vector<ReceivedFrame> receive(std::size_t max_frames, std::size_t max_bytes);
  bool try_send(const PeerId& peer, const std::string& frame);
  std::vector<int> poll_fds() const;

 private:
  std::vector<RouterSocket> sockets_;  // a PeerId's first byte is the index here
  std::vector<std::string> endpoints_;
  std::size_t first_ = 0;
};

}  // namespace prefgrid
