#include "coordinator/loop/client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/limits.h"
#include "common/messages.h"
#include "common/sha256.h"
#include "common/transport.h"
#include "coordinator/loop/endpoints.h"
#include "coordinator/store/holder.h"

namespace prefgrid {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds ask_again{5'000};
constexpr std::chrono::milliseconds repeat_chunk{1'000};

// The next frame until `end`; nullopt: the time is up.
std::optional<std::string> receive(DealerSocket& socket, Clock::time_point end) {
  for (;;) {
    if (auto frame = socket.try_receive()) return frame;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    wait_readable({socket.poll_fd()}, left);
  }
}

Result<Value> outcome_of(Reply reply) {
  if (auto* error = std::get_if<Error>(&reply.outcome)) return std::move(*error);
  return std::get<Value>(std::move(reply.outcome));
}

}  // namespace

struct Client::Impl {
  TransportContext context;
  std::string endpoint;
  std::optional<DealerSocket> control;
  std::optional<DealerSocket> bulk;
  std::uint64_t last_id = 0;

  Result<void> connect_bulk(Client& client);
  Error silent(Duration time) const {
    return {ErrorCode::unavailable, "no answer from the coordinator at " + endpoint + " for " +
                                        std::to_string(time.count() / 1'000) +
                                        " s: is it running?"};
  }
  // The next reply to `id`. A refusal ends the conversation.
  Result<std::optional<Reply>> next_reply(std::uint64_t id, Clock::time_point end) {
    while (auto frame = receive(*control, end)) {
      PREFGRID_ASSIGN(Message message, decode_message(*frame));
      if (auto* refused = std::get_if<Refused>(&message)) {
        return Error{ErrorCode::conflict, "the coordinator refuses: " + refused->reason};
      }
      auto* const reply = std::get_if<Reply>(&message);
      if (reply != nullptr && reply->id == id) return std::optional<Reply>(std::move(*reply));
    }
    return std::optional<Reply>();
  }
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(const std::string& control_endpoint) {
  auto impl = std::make_unique<Impl>();
  impl->endpoint = control_endpoint;
  PREFGRID_ASSIGN(impl->control, DealerSocket::connect(impl->context, control_endpoint));
  return Client(std::move(impl));
}

Result<Client> Client::connect_store(const std::filesystem::path& folder) {
  PREFGRID_ASSIGN(const auto holder, live_holder(folder));
  if (!holder) {
    return Error{ErrorCode::not_found, "no coordinator runs on the store " + folder.string()};
  }
  std::error_code ignored;
  const std::string& local = holder->control_endpoint;
  const bool reachable =
      is_ipc(local) && std::filesystem::exists(local.substr(std::string("ipc://").size()), ignored);
  const std::string& endpoint =
      reachable || holder->network_endpoint.empty() ? local : holder->network_endpoint;
  if (endpoint.empty()) {
    return Error{ErrorCode::unavailable, "the store " + folder.string() + " is held by " +
                                             holder->text() + ", which does not listen yet"};
  }
  return connect(endpoint);
}

Result<Value> Client::request(const std::string& verb, const ValueMap& arguments,
                              Duration timeout) {
  const std::uint64_t id = ++impl_->last_id;
  const std::string frame = encode(Message(Request{id, verb, arguments}));
  const auto end = Clock::now() + timeout;
  while (Clock::now() < end) {
    impl_->control->try_send(frame);
    PREFGRID_ASSIGN(auto reply, impl_->next_reply(id, std::min(end, Clock::now() + ask_again)));
    if (reply) return outcome_of(*std::move(reply));
  }
  return impl_->silent(timeout);
}

Result<void> Client::watch(const ValueMap& arguments,
                           const std::function<bool(const Value&)>& on_change, Duration silence) {
  const std::uint64_t id = ++impl_->last_id;
  const std::string frame = encode(Message(Request{id, "watch", arguments}));
  impl_->control->try_send(frame);
  auto last_heard = Clock::now();
  for (;;) {
    PREFGRID_ASSIGN(auto reply, impl_->next_reply(id, Clock::now() + ask_again));
    if (!reply) {
      if (Clock::now() - last_heard > silence) return impl_->silent(silence);
      impl_->control->try_send(frame);  // it may have started anew meanwhile
      continue;
    }
    last_heard = Clock::now();
    const bool last = reply->last;
    PREFGRID_ASSIGN(const Value value, outcome_of(*std::move(reply)));
    if (!on_change(value) || last) return {};
  }
}

Result<void> Client::Impl::connect_bulk(Client& client) {
  if (bulk) return {};
  PREFGRID_ASSIGN(const Value pong, client.request("ping", {}));
  const auto* const facts = std::get_if<ValueMap>(&pong);
  const auto found = facts == nullptr ? ValueMap::const_iterator() : facts->find("bulk_endpoint");
  if (facts == nullptr || found == facts->end() ||
      !std::holds_alternative<std::string>(found->second)) {
    return Error{ErrorCode::internal, "the coordinator does not name its bulk endpoint"};
  }
  PREFGRID_ASSIGN(bulk, DealerSocket::connect(context, bulk_for(endpoint, found->second.text())));
  return {};
}

// At most limits::chunk_credit chunks ahead of what is acknowledged; after a silence, again from
// there.
Result<ArtifactDigest> Client::put_artifact(std::string_view content, Duration silence) {
  PREFGRID_TRY(impl_->connect_bulk(*this));
  const ArtifactDigest digest = digest_of(content);
  std::uint64_t acknowledged = 0;
  std::uint64_t sent = 0;
  bool probe = true;  // the first message carries no data: the store may have it all
  auto last_heard = Clock::now();
  for (;;) {
    while (probe || (sent < content.size() &&
                     sent < acknowledged + limits::chunk_credit * limits::chunk_bytes)) {
      const auto piece = probe ? std::string_view() : content.substr(sent, limits::chunk_bytes);
      impl_->bulk->try_send(
          encode(BulkMessage(BulkPut{digest, content.size(), sent, std::string(piece)})));
      sent += piece.size();
      if (std::exchange(probe, false)) break;
    }
    const auto frame = receive(*impl_->bulk, Clock::now() + repeat_chunk);
    if (!frame) {
      if (Clock::now() - last_heard > silence) return impl_->silent(silence);
      sent = acknowledged;
      probe = true;
      continue;
    }
    PREFGRID_ASSIGN(const BulkMessage message, decode_bulk(*frame));
    const auto* const ack = std::get_if<BulkPutAck>(&message);
    if (ack == nullptr || ack->digest != digest) continue;
    last_heard = Clock::now();
    if (!ack->problem.empty()) return Error{ErrorCode::internal, "upload: " + ack->problem};
    if (ack->complete) return digest;
    acknowledged = std::min<std::uint64_t>(ack->received, content.size());
    sent = std::max(sent, acknowledged);
  }
}

Result<std::string> Client::get_artifact(const ArtifactDigest& digest, std::size_t max_bytes,
                                         Duration silence) {
  PREFGRID_TRY(impl_->connect_bulk(*this));
  std::string content;
  auto last_heard = Clock::now();
  std::uint64_t asked_until = 0;
  for (;;) {
    if (content.size() >= asked_until) {
      impl_->bulk->try_send(encode(
          BulkMessage(BulkGet{digest, content.size(), std::uint32_t{limits::chunk_credit}})));
      asked_until = content.size() + limits::chunk_credit * limits::chunk_bytes;
    }
    const auto frame = receive(*impl_->bulk, Clock::now() + repeat_chunk);
    if (!frame) {
      if (Clock::now() - last_heard > silence) return impl_->silent(silence);
      asked_until = 0;
      continue;
    }
    PREFGRID_ASSIGN(BulkMessage message, decode_bulk(*frame));
    const auto* const chunk = std::get_if<BulkChunk>(&message);
    if (chunk == nullptr || chunk->digest != digest) continue;
    last_heard = Clock::now();
    if (!chunk->problem.empty()) return Error{ErrorCode::not_found, chunk->problem};
    if (chunk->size > max_bytes) {
      return invalid_input("the artefact " + digest.hex() + " has " + std::to_string(chunk->size) +
                           " bytes, more than fit here");
    }
    if (chunk->offset != content.size()) continue;  // a repetition
    content += chunk->data;
    if (content.size() < chunk->size) continue;
    if (digest_of(content) == digest) return content;
    return Error{ErrorCode::io, "the artefact " + digest.hex() + " arrived damaged"};
  }
}

}  // namespace prefgrid
