#include <spdlog/spdlog.h>

#include <utility>

#include "common/limits.h"
#include "coordinator/loop/coordinator_impl.h"
#include "coordinator/loop/endpoints.h"

namespace prefgrid {
namespace {

// Leases are split over several messages well below limits::message_bytes: one lease may carry
// the inline data of several results.
constexpr std::size_t lease_message_bytes = 4 << 20;
static_assert(lease_message_bytes + 8 * limits::result_inline_bytes < limits::message_bytes);

}  // namespace

bool Coordinator::Impl::send(const PeerId& peer, const Message& message) {
  return sockets.try_send(peer, encode(message));
}

void Coordinator::Impl::complete_welcome(const PeerId& peer, Welcome& welcome) const {
  welcome.software_version = PREFGRID_VERSION;
  welcome.bulk_endpoint = without_wildcard(bulk->endpoints()[sockets.endpoint_of(peer)]);
}

void Coordinator::Impl::send_all() {
  for (Send& item : std::exchange(sends, {})) {
    if (const auto* leases = std::get_if<SendLeases>(&item)) {
      send_leases(*leases);
      continue;
    }
    auto& to = std::get<SendTo>(item);
    if (auto* welcome = std::get_if<Welcome>(&to.message)) complete_welcome(to.peer, *welcome);
    send(to.peer, to.message);  // lost ones are asked for again: the core's protocol
  }
  for (const PendingReply& reply : std::exchange(replies, {})) {
    auto outcome = reply.make();
    Reply message{reply.id, Error{}, true};
    if (outcome.ok()) {
      message.outcome = *std::move(outcome);
    } else {
      message.outcome = outcome.error();
    }
    send(reply.peer, std::move(message));
  }
}

void Coordinator::Impl::send_leases(const SendLeases& leases) {
  Leases message;
  std::vector<LeaseId> ids;
  std::size_t bytes = 0;
  const auto flush = [&] {
    if (message.leases.empty()) return;
    if (!send(leases.peer, std::exchange(message, {}))) {
      next_events.emplace_back(LeasesUndelivered{leases.peer, ids});
    }
    ids.clear();
    bytes = 0;
  };
  for (const LeaseGrant& grant : leases.leases) {
    auto lease = resolver->resolve(grant);
    if (!lease.ok() && lease.error().code == ErrorCode::out_of_space) {
      next_events.emplace_back(LeasesUndelivered{leases.peer, {grant.id}});
      continue;
    }
    if (!lease.ok()) {
      // Charged as the job's own failure, so that it ends in quarantine with its reason.
      spdlog::error("job {}: {}", grant.id.job.short_hex(), lease.error().message);
      JobFailure failure{FailureClass::error, lease.error().message, 0, ""};
      next_events.emplace_back(
          PeerMessage{.peer = leases.peer, .message = FailureMessage{grant.id, failure}});
      continue;
    }
    bytes += LeaseResolver::bytes_of(*lease);
    if (bytes > lease_message_bytes) {
      const std::size_t own = LeaseResolver::bytes_of(*lease);
      flush();
      bytes = own;
    }
    ids.push_back(grant.id);
    message.leases.push_back(*std::move(lease));
  }
  flush();
}

}  // namespace prefgrid
