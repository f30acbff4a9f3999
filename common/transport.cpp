#include "common/transport.h"

#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <zmq.hpp>

#include "common/files.h"
#include "common/limits.h"

namespace prefgrid {
namespace {

constexpr std::string_view ipc_scheme = "ipc://";
constexpr std::string_view tcp_scheme = "tcp://";
// Messages queued for one peer in each direction before try_send says no.
constexpr int high_water_mark = 4096;
// Pings of libzmq's own thread find links that died without a word. They say nothing about the
// peer's loop: that is what limits::heartbeat_ms is for.
constexpr int link_ping_ms = 5'000;
constexpr int link_timeout_ms = static_cast<int>(limits::lease_timeout_ms);
constexpr int reconnect_ms = 100;
constexpr int reconnect_most_ms = 2'000;
constexpr int close_most_ms = 1'000;
constexpr std::size_t peer_id_bytes = 16;

// A ZeroMQ socket whose descriptor is level-triggered. ZMQ_FD alone is not: it wakes once for any
// number of messages, and sending can swallow the wake-up for what arrived meanwhile. So an
// eventfd stands in for "there may be more", and one epoll descriptor covers both.
class Socket {
 public:
  Socket(zmq::context_t& context, zmq::socket_type type) : zmq_(context, type) {
    zmq_.set(zmq::sockopt::linger, 0);
    zmq_.set(zmq::sockopt::sndhwm, high_water_mark);
    zmq_.set(zmq::sockopt::rcvhwm, high_water_mark);
    zmq_.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(limits::message_bytes));
    zmq_.set(zmq::sockopt::heartbeat_ivl, link_ping_ms);
    zmq_.set(zmq::sockopt::heartbeat_timeout, link_timeout_ms);
    zmq_.set(zmq::sockopt::reconnect_ivl, reconnect_ms);
    zmq_.set(zmq::sockopt::reconnect_ivl_max, reconnect_most_ms);
    more_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    poll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
    PREFGRID_CHECK(more_ && poll_, "no descriptors left for a socket: raise `ulimit -n`");
    watch(zmq_.get(zmq::sockopt::fd));
    watch(more_.get());
  }

  zmq::socket_t& zmq() { return zmq_; }
  int poll_fd() const { return poll_.get(); }

  // One frame of a message; nullopt: nothing is waiting. Parts arrive all or none.
  std::optional<std::string> receive_part() {
    for (;;) {
      try {
        zmq::message_t part;
        if (!zmq_.recv(part, zmq::recv_flags::dontwait)) {
          set_more(false);
          return std::nullopt;
        }
        set_more(true);
        return part.to_string();
      } catch (const zmq::error_t& problem) {
        PREFGRID_CHECK(problem.num() == EINTR, std::string("receiving: ") + problem.what());
      }
    }
  }
  bool more_parts() { return zmq_.get(zmq::sockopt::rcvmore); }

  // False: the peer is gone, or its queue is full.
  bool send_part(std::string_view part, bool more) {
    const auto flags =
        zmq::send_flags::dontwait | (more ? zmq::send_flags::sndmore : zmq::send_flags::none);
    for (;;) {
      try {
        return zmq_.send(zmq::buffer(part), flags).has_value();
      } catch (const zmq::error_t& problem) {
        if (problem.num() == EINTR) continue;
        PREFGRID_CHECK(problem.num() == EHOSTUNREACH, std::string("sending: ") + problem.what());
        return false;
      }
    }
  }
  // After sending: what arrived meanwhile must still wake the poller.
  void look_again() {
    if (!more_set_ && (zmq_.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0) set_more(true);
  }

 private:
  void watch(int descriptor) {
    epoll_event event{};
    event.events = EPOLLIN;
    const int added = ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &event);
    PREFGRID_CHECK(added == 0, "epoll_ctl: errno " + std::to_string(errno));
  }

  void set_more(bool more) {
    if (more == more_set_) return;
    more_set_ = more;
    std::uint64_t count = 1;
    const ssize_t done = more ? ::write(more_.get(), &count, sizeof count)
                              : ::read(more_.get(), &count, sizeof count);
    PREFGRID_CHECK(done == sizeof count, "eventfd: errno " + std::to_string(errno));
  }

  zmq::socket_t zmq_;
  Descriptor more_;
  Descriptor poll_;
  bool more_set_ = false;
};

Error socket_error(const std::string& what, const zmq::error_t& problem) {
  switch (problem.num()) {
    case EADDRINUSE:
      return {ErrorCode::conflict, what + ": another process uses this address"};
    case ENAMETOOLONG:
      return invalid_input(what + ": the path is too long for a socket, use a shorter one");
    case EINVAL:
    case EPROTONOSUPPORT:
    case ENODEV:
    case EADDRNOTAVAIL:
      return invalid_input(what + ": " + problem.what() +
                           "; give tcp://HOST:PORT or ipc://PATH (to listen, an address of this "
                           "machine)");
    default:
      return os_error(problem.num(), what);
  }
}

// libzmq takes a port modulo 65536.
Result<void> check_port(const std::string& endpoint, bool binds) {
  if (!endpoint.starts_with(tcp_scheme)) return {};
  const std::string port = endpoint.substr(endpoint.rfind(':') + 1);
  if (binds && port == "*") return {};
  const bool digits = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  const int number = digits ? std::stoi(port) : -1;
  if (number >= (binds ? 0 : 1) && number <= 65'535) return {};
  return invalid_input(endpoint + " names no port: give tcp://HOST:PORT, PORT up to 65535" +
                       (binds ? ", or * for a free one" : ""));
}

// "tcp://HOST:PORT" -> HOST
std::string_view host_of(std::string_view endpoint) {
  endpoint.remove_prefix(std::min(tcp_scheme.size(), endpoint.size()));
  return endpoint.substr(0, endpoint.rfind(':'));
}

// libzmq with IPv6 on takes a name's IPv6 address only, although the other side may listen on IPv4
// ("localhost" against 127.0.0.1). So: IPv6 for literals, "*" and names that have no IPv4 address.
bool wants_ipv6(std::string_view endpoint) {
  if (!endpoint.starts_with(tcp_scheme)) return false;
  const std::string_view host = host_of(endpoint);
  if (host == "*" || host.starts_with('[')) return true;
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int outcome = ::getaddrinfo(std::string(host).c_str(), nullptr, &hints, &found);
  if (outcome == 0) ::freeaddrinfo(found);
  return outcome == EAI_NONAME || outcome == EAI_ADDRFAMILY || outcome == EAI_NODATA;
}

// libzmq binds to numeric addresses and interface names only; people write host names.
std::string numeric_address(const std::string& endpoint) {
  const std::string host(host_of(endpoint));
  if (!endpoint.starts_with(tcp_scheme) || host.empty() || host == "*" || host.front() == '[' ||
      ::if_nametoindex(host.c_str()) != 0) {
    return endpoint;
  }
  addrinfo hints{};
  hints.ai_family = wants_ipv6(endpoint) ? AF_INET6 : AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return endpoint;
  std::array<char, NI_MAXHOST> text{};
  const int named = ::getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(),
                                  nullptr, 0, NI_NUMERICHOST);
  ::freeaddrinfo(found);
  if (named != 0) return endpoint;
  const std::string numeric(text.data());
  const bool brackets = hints.ai_family == AF_INET6;
  return std::string(tcp_scheme) + (brackets ? "[" + numeric + "]" : numeric) +
         endpoint.substr(tcp_scheme.size() + host.size());
}

// libzmq deletes the file before it binds, also one that a living process listens on.
Result<void> refuse_live_ipc(const std::string& endpoint) {
  const std::string path = endpoint.substr(ipc_scheme.size());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path == "*" || path.front() == '@' ||
      path.size() >= sizeof address.sun_path) {
    return {};  // nothing to probe; bind says what is wrong
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return Error{ErrorCode::conflict, "cannot listen on " + endpoint +
                                          ": there is a file of that name, which is no socket"};
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int connected =
      ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (connected == 0 || errno == EAGAIN) {
    return Error{ErrorCode::conflict,
                 "cannot listen on " + endpoint + ": another process uses this address"};
  }
  return {};
}

std::string random_peer_id() {
  std::string id(peer_id_bytes, '\0');
  const ssize_t count = ::getrandom(id.data(), id.size(), 0);
  PREFGRID_CHECK(count == static_cast<ssize_t>(id.size()), "getrandom failed");
  if (id[0] == '\0') id[0] = 1;  // ids that start with 0 are libzmq's own
  return id;
}

int poll_timeout(std::optional<std::chrono::milliseconds> timeout) {
  if (!timeout) return -1;
  return static_cast<int>(std::clamp<std::int64_t>(timeout->count(), 0, INT_MAX));
}

}  // namespace

struct TransportContext::Impl {
  zmq::context_t context{1};
};
TransportContext::TransportContext() : impl_(std::make_unique<Impl>()) {}
TransportContext::~TransportContext() = default;

struct RouterSocket::Impl {
  explicit Impl(zmq::context_t& zmq_context)
      : context(zmq_context), socket(zmq_context, zmq::socket_type::router) {}
  ~Impl();
  zmq::context_t& context;
  Socket socket;
  std::string endpoint;  // empty until it is bound
};

// libzmq closes a listener later, on a thread of its own, and only then deletes its ipc file, be it
// by then a successor's. So: wait until it has.
RouterSocket::Impl::~Impl() {
  if (endpoint.empty()) return;
  try {
    const std::string events = "inproc://closed-" + std::to_string(socket.poll_fd());
    zmq::socket_t& listening = socket.zmq();
    if (zmq_socket_monitor(listening.handle(), events.c_str(), ZMQ_EVENT_CLOSED) != 0) return;
    zmq::socket_t monitor(context, zmq::socket_type::pair);
    monitor.set(zmq::sockopt::linger, 0);
    monitor.set(zmq::sockopt::rcvtimeo, close_most_ms);
    monitor.connect(events);
    listening.unbind(endpoint);
    zmq::message_t event;
    static_cast<void>(monitor.recv(event));
    zmq_socket_monitor(listening.handle(), nullptr, 0);
  } catch (const zmq::error_t&) {
    // The address stays taken for a moment longer; whoever needs it hears so.
  }
}

RouterSocket::RouterSocket() = default;
RouterSocket::RouterSocket(RouterSocket&&) noexcept = default;
RouterSocket& RouterSocket::operator=(RouterSocket&&) noexcept = default;
RouterSocket::~RouterSocket() = default;

Result<RouterSocket> RouterSocket::bind(TransportContext& context, const std::string& endpoint) {
  const bool ipc = endpoint.starts_with(ipc_scheme);
  PREFGRID_TRY(check_port(endpoint, true));
  if (ipc) PREFGRID_TRY(refuse_live_ipc(endpoint));
  RouterSocket router;
  try {
    router.impl_ = std::make_unique<Impl>(context.impl_->context);
    zmq::socket_t& socket = router.impl_->socket.zmq();
    socket.set(zmq::sockopt::router_mandatory, true);
    // A peer that reconnects while the router still holds its dead connection takes it over. Ids
    // are 128 random bits, so nobody else can.
    socket.set(zmq::sockopt::router_handover, true);
    socket.set(zmq::sockopt::ipv6, wants_ipv6(endpoint));
    socket.bind(numeric_address(endpoint));
    router.impl_->endpoint = socket.get(zmq::sockopt::last_endpoint);
  } catch (const zmq::error_t& problem) {
    return socket_error("cannot listen on " + endpoint, problem);
  }
  if (ipc && endpoint.find('@') != ipc_scheme.size()) {
    // Who may read the store may not therefore command it.
    const std::string path = router.impl_->endpoint.substr(ipc_scheme.size());
    if (::chmod(path.c_str(), 0600) != 0) return os_error(errno, "cannot protect " + path);
  }
  return router;
}

const std::string& RouterSocket::endpoint() const {
  return impl_->endpoint;
}
int RouterSocket::poll_fd() const {
  return impl_->socket.poll_fd();
}

std::optional<ReceivedFrame> RouterSocket::try_receive() {
  Socket& socket = impl_->socket;
  for (;;) {
    std::optional<std::string> peer = socket.receive_part();
    if (!peer) return std::nullopt;
    std::vector<std::string> parts;
    std::size_t count = 0;
    while (socket.more_parts()) {
      std::optional<std::string> part = socket.receive_part();
      if (part && count++ == 0) parts.push_back(*std::move(part));
    }
    // Our peers send one part. What else comes is a stranger's, and is passed over.
    if (count == 1) return ReceivedFrame{{*std::move(peer)}, std::move(parts.front())};
  }
}

bool RouterSocket::try_send(const PeerId& peer, const std::string& frame) {
  PREFGRID_CHECK(frame.size() <= limits::message_bytes,
                 "a frame of " + std::to_string(frame.size()) + " bytes");
  Socket& socket = impl_->socket;
  const bool sent = socket.send_part(peer.bytes, true) && socket.send_part(frame, false);
  socket.look_again();
  return sent;
}

struct DealerSocket::Impl {
  explicit Impl(zmq::context_t& context) : socket(context, zmq::socket_type::dealer) {}
  Socket socket;
};

DealerSocket::DealerSocket() = default;
DealerSocket::DealerSocket(DealerSocket&&) noexcept = default;
DealerSocket& DealerSocket::operator=(DealerSocket&&) noexcept = default;
DealerSocket::~DealerSocket() = default;

Result<DealerSocket> DealerSocket::connect(TransportContext& context, const std::string& endpoint) {
  PREFGRID_TRY(check_port(endpoint, false));
  DealerSocket dealer;
  try {
    dealer.impl_ = std::make_unique<Impl>(context.impl_->context);
    zmq::socket_t& socket = dealer.impl_->socket.zmq();
    socket.set(zmq::sockopt::routing_id, random_peer_id());
    socket.set(zmq::sockopt::ipv6, wants_ipv6(endpoint));
    socket.connect(endpoint);
  } catch (const zmq::error_t& problem) {
    return socket_error("cannot connect to " + endpoint, problem);
  }
  return dealer;
}

int DealerSocket::poll_fd() const {
  return impl_->socket.poll_fd();
}

std::optional<std::string> DealerSocket::try_receive() {
  Socket& socket = impl_->socket;
  for (;;) {
    std::optional<std::string> frame = socket.receive_part();
    if (!frame) return std::nullopt;
    if (!socket.more_parts()) return frame;
    while (socket.more_parts()) socket.receive_part();
  }
}

bool DealerSocket::try_send(const std::string& frame) {
  PREFGRID_CHECK(frame.size() <= limits::message_bytes,
                 "a frame of " + std::to_string(frame.size()) + " bytes");
  const bool sent = impl_->socket.send_part(frame, false);
  impl_->socket.look_again();
  return sent;
}

std::vector<std::size_t> wait_readable(const std::vector<int>& descriptors,
                                       std::optional<std::chrono::milliseconds> timeout) {
  std::vector<pollfd> polled;
  polled.reserve(descriptors.size());
  for (const int descriptor : descriptors) polled.push_back({descriptor, POLLIN, 0});
  const int count = ::poll(polled.data(), polled.size(), poll_timeout(timeout));
  PREFGRID_CHECK(count >= 0 || errno == EINTR, "poll: errno " + std::to_string(errno));
  std::vector<std::size_t> readable;
  for (std::size_t i = 0; count > 0 && i < polled.size(); ++i) {
    PREFGRID_CHECK((polled[i].revents & POLLNVAL) == 0,
                   "descriptor " + std::to_string(descriptors[i]) + " is not open");
    if (polled[i].revents != 0) readable.push_back(i);
  }
  return readable;
}

}  // namespace prefgrid
