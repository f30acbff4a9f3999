#include "worker/agent/bulk_thread.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace prefgrid {

std::string reachable_endpoint(const std::string& control, const std::string& bulk) {
  const std::string scheme = "tcp://";
  if (!bulk.starts_with(scheme) || !control.starts_with(scheme)) return bulk;
  const std::size_t port = bulk.rfind(':');
  if (port < scheme.size()) return bulk;
  const std::string host = bulk.substr(scheme.size(), port - scheme.size());
  constexpr std::array<std::string_view, 4> anywhere{"", "*", "0.0.0.0", "[::]"};
  if (std::find(anywhere.begin(), anywhere.end(), host) == anywhere.end()) return bulk;
  const std::size_t control_port = control.rfind(':');
  if (control_port < scheme.size()) return bulk;
  return control.substr(0, control_port) + bulk.substr(port);
}

BulkThread::BulkThread(TransportContext& context, FileService service, std::string control_endpoint)
    : context_(context),
      control_endpoint_(std::move(control_endpoint)),
      service_(std::move(service)),
      thread_([this] { run(); }) {}

BulkThread::~BulkThread() {
  commands_.post(Stop{});
  thread_.join();
}

bool BulkThread::take_orders() {
  for (Order& order : commands_.take_all()) {
    if (std::holds_alternative<Stop>(order)) return false;
    obey(std::move(std::get<Command>(order)));
  }
  return true;
}

void BulkThread::obey(Command command) {
  const MonotonicMs now = monotonic_now();
  if (auto* prepare = std::get_if<PrepareFiles>(&command)) {
    service_.prepare(std::move(*prepare), now);
  } else if (auto* store = std::get_if<StoreFiles>(&command)) {
    service_.store(std::move(*store), now);
  } else if (auto* judge = std::get_if<JudgeFailure>(&command)) {
    service_.judge(*judge, now);
  } else if (auto* release = std::get_if<ReleaseFiles>(&command)) {
    service_.release(*release);
  } else if (auto* use = std::get_if<UseBulkEndpoint>(&command)) {
    connect(reachable_endpoint(control_endpoint_, use->endpoint));
  }
}

void BulkThread::connect(const std::string& endpoint) {
  service_.hurry();
  if (endpoint == endpoint_ && socket_) return;  // it reconnects by itself
  socket_.reset();
  auto socket = DealerSocket::connect(context_, endpoint);
  if (!socket) {
    spdlog::error("cannot use the coordinator's bulk endpoint {}: {}", endpoint,
                  socket.error().message);
    return;  // transfers wait for the next welcome
  }
  socket_.emplace(*std::move(socket));
  endpoint_ = endpoint;
}

void BulkThread::run() {
  while (take_orders()) {
    bool busy = false;
    while (socket_) {
      const auto frame = socket_->try_receive();
      if (!frame) break;
      busy = true;
      const auto message = decode_bulk(*frame);
      if (message) {
        service_.on_bulk(*message, monotonic_now());
      } else {
        spdlog::warn("a bulk message was damaged: {}", message.error().message);
      }
    }
    if (socket_) {
      for (const BulkMessage& message : service_.outgoing(monotonic_now())) {
        busy = true;
        if (!socket_->try_send(encode(message))) break;  // asked again after a while
      }
    }
    service_.look_for_room(monotonic_now());
    for (FileReport& report : service_.take_reports()) reports_.post(std::move(report));
    if (busy) continue;  // sending may have taken the socket's edge: look before waiting

    std::vector<int> descriptors{commands_.descriptor()};
    if (socket_) descriptors.push_back(socket_->poll_fd());
    std::optional<std::chrono::milliseconds> timeout;
    // Without a socket no transfer can be hurried; the disk is looked at all the same.
    const auto deadline = socket_ ? service_.next_deadline() : service_.next_look();
    if (deadline) {
      const std::int64_t wait = std::max<std::int64_t>(*deadline - monotonic_now(), 0);
      timeout = std::chrono::milliseconds(wait);
    }
    wait_readable(descriptors, timeout);
  }
  socket_.reset();  // in the thread that made it
}

}  // namespace prefgrid
