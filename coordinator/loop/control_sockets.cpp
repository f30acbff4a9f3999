#include "coordinator/loop/control_sockets.h"

#include <utility>

namespace prefgrid {

Result<void> ControlSockets::bind(TransportContext& context, const std::string& endpoint) {
  PREFGRID_CHECK(sockets_.size() < 256, "too many endpoints");
  PREFGRID_ASSIGN(RouterSocket socket, RouterSocket::bind(context, endpoint));
  endpoints_.push_back(socket.endpoint());
  sockets_.push_back(std::move(socket));
  return {};
}

std::size_t ControlSockets::endpoint_of(const PeerId& peer) const {
  PREFGRID_CHECK(!peer.bytes.empty(), "a peer without a name");
  const auto index = static_cast<std::size_t>(static_cast<unsigned char>(peer.bytes[0]));
  PREFGRID_CHECK(index < sockets_.size(), "a peer of no socket of ours");
  return index;
}

std::vector<ReceivedFrame> ControlSockets::receive(std::size_t max_frames, std::size_t max_bytes) {
  std::vector<ReceivedFrame> frames;
  std::size_t bytes = 0;
  std::size_t silent = 0;
  for (std::size_t i = first_++; silent < sockets_.size(); ++i) {
    const std::size_t index = i % sockets_.size();
    auto received = sockets_[index].try_receive();
    if (!received) {
      ++silent;
      continue;
    }
    silent = 0;
    received->peer.bytes.insert(received->peer.bytes.begin(), static_cast<char>(index));
    bytes += received->frame.size();
    frames.push_back(*std::move(received));
    if (frames.size() >= max_frames || bytes >= max_bytes) break;
  }
  return frames;
}

bool ControlSockets::try_send(const PeerId& peer, const std::string& frame) {
  return sockets_[endpoint_of(peer)].try_send({peer.bytes.substr(1)}, frame);
}

std::vector<int> ControlSockets::poll_fds() const {
  std::vector<int> descriptors;
  for (const RouterSocket& socket : sockets_) descriptors.push_back(socket.poll_fd());
  return descriptors;
}

}  // namespace prefgrid
