#include "common/transport.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "common/files.h"
#include "common/limits.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds patience{10'000};  // a failing test's, not a passing one's

// Waits for the socket's descriptor, as every loop of ours does.
template <class SocketType>
auto receive(SocketType& socket, milliseconds at_most = patience) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  for (;;) {
    auto received = socket.try_receive();
    if (received || std::chrono::steady_clock::now() > end) return received;
    wait_readable({socket.poll_fd()}, at_most);
  }
}

std::string in_folder(const TempDir& dir) {
  return "ipc://" + (dir.path() / "s").string();
}

}  // namespace

TEST_CASE("a router answers each dealer that wrote to it, over tcp and ipc, IPv4 and IPv6") {
  const TempDir dir;
  TransportContext context;
  for (const std::string& endpoint :
       {std::string("tcp://127.0.0.1:*"), std::string("tcp://*:0"),
        std::string("tcp://localhost:*"), std::string("tcp://[::1]:0"), in_folder(dir)}) {
    CAPTURE(endpoint);
    auto bound = RouterSocket::bind(context, endpoint);
    if (!bound && endpoint.find("::1") != std::string::npos) continue;  // a host without IPv6
    RouterSocket router = *std::move(bound);
    std::string target = router.endpoint();
    CHECK(target.find('*') == std::string::npos);
    CHECK_FALSE(target.ends_with(":0"));
    if (endpoint == "tcp://*:0") target = "tcp://127.0.0.1" + target.substr(target.rfind(':'));
    DealerSocket first = DealerSocket::connect(context, target).value();
    DealerSocket second = DealerSocket::connect(context, target).value();
    REQUIRE(first.try_send("from first"));
    REQUIRE(second.try_send("from second"));
    for (int i = 0; i < 2; ++i) {
      const auto received = receive(router);
      REQUIRE(received);
      REQUIRE(router.try_send(received->peer, "to " + received->frame));
    }
    CHECK(receive(first) == "to from first");
    CHECK(receive(second) == "to from second");
    CHECK_FALSE(first.try_receive());
  }
}

TEST_CASE("a router says that it cannot reach a peer it does not know") {
  TransportContext context;
  RouterSocket router = RouterSocket::bind(context, "tcp://127.0.0.1:*").value();
  CHECK_FALSE(router.try_send(PeerId{"nobody"}, "x"));
}

TEST_CASE("a router's send fails when the peer does not read, and never blocks") {
  TransportContext context;
  RouterSocket router = RouterSocket::bind(context, "tcp://127.0.0.1:*").value();
  DealerSocket dealer = DealerSocket::connect(context, router.endpoint()).value();
  REQUIRE(dealer.try_send("hello"));
  const auto hello = receive(router);
  REQUIRE(hello);
  const std::string frame(64 << 10, 'x');
  int sent = 0;
  while (sent < 100'000 && router.try_send(hello->peer, frame)) ++sent;
  CHECK(sent < 100'000);
  CHECK(sent > 100);
}

TEST_CASE("the descriptor stays readable until a drain has come to its end") {
  // A loop may stop in the middle of a drain: ZMQ_FD alone would then sleep on the rest.
  TransportContext context;
  RouterSocket router = RouterSocket::bind(context, "tcp://127.0.0.1:*").value();
  DealerSocket dealer = DealerSocket::connect(context, router.endpoint()).value();
  for (int i = 0; i < 3; ++i) REQUIRE(dealer.try_send(std::to_string(i)));
  for (int i = 0; i < 3; ++i) {
    REQUIRE(receive(router)->frame == std::to_string(i));
    CHECK(wait_readable({router.poll_fd()}, milliseconds(0)).size() == 1);
  }
  while (router.try_receive()) {
  }
  CHECK(wait_readable({router.poll_fd()}, milliseconds(0)).empty());
}

TEST_CASE("a message that arrives while its receiver sends still wakes it") {
  // Sending makes libzmq read its mailbox, which swallows ZMQ_FD's only wake-up.
  TransportContext context;
  RouterSocket router = RouterSocket::bind(context, "tcp://127.0.0.1:*").value();
  DealerSocket dealer = DealerSocket::connect(context, router.endpoint()).value();
  REQUIRE(dealer.try_send("hello"));
  const PeerId peer = receive(router)->peer;
  for (int round = 0; round < 2'000; ++round) {
    while (dealer.try_receive()) {
    }
    REQUIRE(router.try_send(peer, "answer"));
    // Until the answer is there, the dealer sends: then it waits without receiving first.
    for (int i = 0; i < round % 7; ++i) REQUIRE(dealer.try_send("x"));
    REQUIRE(wait_readable({dealer.poll_fd()}, patience).size() == 1);
    REQUIRE(receive(dealer) == "answer");
    while (router.try_receive()) {
    }
  }
}

TEST_CASE("a dealer that connects first reaches a router that comes later") {
  const TempDir dir;
  TransportContext context;
  DealerSocket dealer = DealerSocket::connect(context, in_folder(dir)).value();
  REQUIRE(dealer.try_send("early"));
  RouterSocket router = RouterSocket::bind(context, in_folder(dir)).value();
  const auto received = receive(router);
  REQUIRE(received);
  CHECK(received->frame == "early");
}

TEST_CASE("a dealer keeps its id when the router restarts on the same address") {
  const TempDir dir;
  TransportContext context;
  std::optional<RouterSocket> router = RouterSocket::bind(context, in_folder(dir)).value();
  DealerSocket dealer = DealerSocket::connect(context, in_folder(dir)).value();
  REQUIRE(dealer.try_send("one"));
  const PeerId before = receive(*router)->peer;
  router.reset();
  Result<RouterSocket> again = RouterSocket::bind(context, in_folder(dir));
  REQUIRE(again.ok());
  // What went into the dying connection is lost: send until something arrives.
  std::optional<ReceivedFrame> received;
  for (int attempt = 0; attempt < 100 && !received; ++attempt) {
    REQUIRE(dealer.try_send("two"));
    received = receive(*again, milliseconds(100));
  }
  REQUIRE(received);
  CHECK(received->peer == before);
}

TEST_CASE("an address in use is refused by name, for tcp and for ipc") {
  const TempDir dir;
  TransportContext context;
  for (const std::string& wanted : {std::string("tcp://127.0.0.1:*"), in_folder(dir)}) {
    RouterSocket router = RouterSocket::bind(context, wanted).value();
    const auto second = RouterSocket::bind(context, router.endpoint());
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().code == ErrorCode::conflict);
    CHECK(second.error().message.find(router.endpoint()) != std::string::npos);
    // ... and the first one still works.
    DealerSocket dealer = DealerSocket::connect(context, router.endpoint()).value();
    REQUIRE(dealer.try_send("x"));
    CHECK(receive(router));
  }
}

TEST_CASE("an ipc file that a dead process left is replaced, an ordinary file is not") {
  const TempDir dir;
  TransportContext context;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (dir.path() / "s").string();
  std::copy(path.begin(), path.end(), address.sun_path);
  {
    const Descriptor dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  CHECK(RouterSocket::bind(context, "ipc://" + path).ok());
  const auto file = dir.write("precious", "data");
  CHECK(RouterSocket::bind(context, "ipc://" + file.string()).error().code == ErrorCode::conflict);
  CHECK(read_file(file, 10).value() == "data");
}

TEST_CASE("only its owner may connect to an ipc socket") {
  const TempDir dir;
  TransportContext context;
  const RouterSocket router = RouterSocket::bind(context, in_folder(dir)).value();
  struct stat status {};
  REQUIRE(::stat((dir.path() / "s").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("an endpoint that cannot work is an error with its text, never an exception") {
  TransportContext context;
  const std::string long_path = "ipc:///" + std::string(200, 'a');
  for (const std::string& endpoint :
       {std::string(), std::string("tcp"), std::string("tcp://"), std::string("tcp://127.0.0.1"),
        std::string("tcp://127.0.0.1:99999"), std::string("udp://127.0.0.1:1"),
        std::string("tcp://no.such.host.invalid:1"), std::string("ipc:///no/such/folder/s"),
        std::string("ipc://"), long_path}) {
    CAPTURE(endpoint);
    const auto bound = RouterSocket::bind(context, endpoint);
    if (endpoint == "ipc://") continue;  // libzmq picks a name of its own
    REQUIRE_FALSE(bound.ok());
    CHECK(bound.error().message.find(endpoint) != std::string::npos);
  }
  CHECK_FALSE(DealerSocket::connect(context, "nonsense").ok());
  CHECK_FALSE(DealerSocket::connect(context, "").ok());
}

TEST_CASE("wait_readable tells time-out, signal and readable descriptors apart by its indices") {
  CHECK(wait_readable({}, milliseconds(0)).empty());
  CHECK(wait_readable({}, milliseconds(-5)).empty());
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  CHECK(wait_readable({reader.get()}, milliseconds(0)).empty());
  REQUIRE(::write(writer.get(), "x", 1) == 1);
  CHECK(wait_readable({reader.get()}, std::nullopt) == std::vector<std::size_t>{0});
  char byte;
  REQUIRE(::read(reader.get(), &byte, 1) == 1);

  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, &old);
  ::alarm(1);
  CHECK(wait_readable({reader.get()}, patience).empty());
  ::sigaction(SIGALRM, &old, nullptr);
  writer.close();
  CHECK(wait_readable({reader.get()}, std::nullopt) == std::vector<std::size_t>{0});
}

}  // namespace prefgrid
