#include "coordinator/loop/bulk_server.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "common/limits.h"
#include "common/messages.h"

namespace prefgrid {
namespace {

// Frames of one socket before the next one has its turn.
constexpr std::size_t frames_per_turn = 64;

}  // namespace

BulkServer::BulkServer(Store& store, std::function<void(const ArtifactDigest&)> complete)
    : store_(store), complete_(std::move(complete)), uploads_(store) {}

Result<std::unique_ptr<BulkServer>> BulkServer::bind(
    TransportContext& context, const std::vector<std::string>& endpoints, Store& store,
    std::function<void(const ArtifactDigest&)> complete) {
  std::unique_ptr<BulkServer> server(new BulkServer(store, std::move(complete)));
  for (const std::string& endpoint : endpoints) {
    PREFGRID_ASSIGN(RouterSocket socket, RouterSocket::bind(context, endpoint));
    server->endpoints_.push_back(socket.endpoint());
    server->sockets_.push_back(std::move(socket));
  }
  return server;
}

BulkServer::~BulkServer() {
  stop_ = true;
  wake_up_.wake();
  if (thread_.joinable()) thread_.join();
}

// Starting the thread is a full barrier, which is what ZeroMQ asks for when a socket changes hands.
void BulkServer::start() {
  thread_ = std::thread([this] { serve(); });
}

void BulkServer::serve() {
  std::vector<int> descriptors{wake_up_.poll_fd()};
  for (const RouterSocket& socket : sockets_) descriptors.push_back(socket.poll_fd());
  while (!stop_) {
    bool worked = false;
    for (RouterSocket& socket : sockets_) worked |= drain(socket);
    if (!worked) wait_readable(descriptors, std::nullopt);
  }
}

bool BulkServer::drain(RouterSocket& socket) {
  for (std::size_t count = 0; count < frames_per_turn; ++count) {
    const auto received = socket.try_receive();
    if (!received) return count > 0;
    answer(socket, *received);
  }
  return true;
}

void BulkServer::answer(RouterSocket& socket, const ReceivedFrame& received) {
  const auto message = decode_bulk(received.frame);
  if (!message.ok()) {
    spdlog::debug("bulk endpoint: a frame was dropped: {}", message.error().message);
    return;
  }
  if (const auto* put = std::get_if<BulkPut>(&*message)) {
    const auto ack = uploads_.put(*put);
    if (!ack) return;
    if (!ack->problem.empty()) {
      spdlog::warn("upload of artefact {}: {}", put->digest.short_hex(), ack->problem);
    }
    if (ack->complete) complete_(put->digest);
    socket.try_send(received.peer, encode(BulkMessage(*ack)));
  } else if (const auto* get = std::get_if<BulkGet>(&*message)) {
    send_chunks(socket, received.peer, *get);
  }
}

// Stateless: a peer that misses chunks asks again from where it stands.
void BulkServer::send_chunks(RouterSocket& socket, const PeerId& peer, const BulkGet& wanted) {
  BulkChunk chunk{wanted.digest, 0, wanted.offset, "", ""};
  const auto size = store_.artifact_size(wanted.digest);
  // A full disk closes the database for a while: no answer, the peer asks again.
  if (!size.ok() && size.error().code == ErrorCode::out_of_space) return;
  if (!size.ok() || !*size) {
    chunk.problem =
        size.ok() ? "the store has no artefact " + wanted.digest.hex() : size.error().message;
    socket.try_send(peer, encode(BulkMessage(chunk)));
    return;
  }
  chunk.size = **size;
  const auto credit = std::min<std::size_t>(wanted.credit, limits::chunk_credit);
  for (std::size_t sent = 0; sent < credit; ++sent) {
    auto data = store_.read_artifact(wanted.digest, chunk.offset, limits::chunk_bytes);
    if (data.ok()) {
      chunk.data = *std::move(data);
    } else if (data.error().code == ErrorCode::out_of_space) {
      return;
    } else {
      chunk.data.clear();
      chunk.problem = data.error().message;
    }
    const bool more = socket.try_send(peer, encode(BulkMessage(chunk)));
    chunk.offset += chunk.data.size();
    if (!more || !chunk.problem.empty() || chunk.offset >= chunk.size) return;
  }
}

}  // namespace prefgrid
