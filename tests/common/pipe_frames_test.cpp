#include "common/pipe_frames.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "common/files.h"
#include "common/limits.h"
#include "common/random.h"
#include "tests/support/seed.h"

namespace prefgrid {
namespace {

struct Pair {
  Descriptor ours;
  Descriptor theirs;
};

Pair socket_pair() {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace

TEST_CASE("frames written in one go come out one by one, empty ones too") {
  const Pair pair = socket_pair();
  for (const std::string body : {"first", "", "third"}) {
    REQUIRE(write_frame(pair.ours.get(), body).ok());
  }
  FrameReader reader;
  REQUIRE(reader.fill(pair.theirs.get()).value());
  CHECK(reader.next().value() == "first");
  CHECK(reader.next().value() == "");
  CHECK(reader.next().value() == "third");
  CHECK(reader.next().value() == std::nullopt);
  CHECK(reader.pending() == 0);
}

TEST_CASE("a frame that arrives byte by byte is whole only at its last byte") {
  const Pair pair = socket_pair();
  const std::string bytes("\x03\0\0\0abc", 7);
  FrameReader reader;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    REQUIRE(reader.next().value() == std::nullopt);
    REQUIRE(write_all(pair.ours.get(), bytes.substr(i, 1), "pair").ok());
    REQUIRE(reader.fill(pair.theirs.get()).value());
  }
  CHECK(reader.next().value() == "abc");
}

TEST_CASE("frames far over the socket's buffer pass while the other side reads") {
  const Pair pair = socket_pair();
  REQUIRE(::fcntl(pair.ours.get(), F_SETFL, O_NONBLOCK) == 0);
  RandomStream random(test_seed(), "frames");
  std::vector<std::string> bodies;
  for (int i = 0; i < 20; ++i) {
    bodies.emplace_back(random.below(1 << 20), static_cast<char>('a' + i));
  }
  std::vector<std::string> received;
  std::thread other([&] {
    FrameReader reader;
    while (reader.fill(pair.theirs.get()).value()) {
      for (auto frame = reader.next().value(); frame; frame = reader.next().value()) {
        received.push_back(*std::move(frame));
      }
    }
  });
  bool written = true;
  for (const std::string& body : bodies) written = written && write_frame(pair.ours.get(), body);
  ::shutdown(pair.ours.get(), SHUT_WR);
  other.join();
  CHECK(written);
  CHECK(received == bodies);
}

TEST_CASE("a writer learns that the reader is gone, without a signal") {
  Pair pair = socket_pair();
  pair.theirs.close();
  const auto outcome = write_frame(pair.ours.get(), "x");
  REQUIRE_FALSE(outcome.ok());
  CHECK(outcome.error().code == ErrorCode::unavailable);
}

TEST_CASE("a reader learns that the writer is gone, and that a frame was torn") {
  Pair pair = socket_pair();
  REQUIRE(write_all(pair.ours.get(), std::string_view("\x09\0\0\0ab", 6), "pair").ok());
  pair.ours.close();
  FrameReader reader;
  CHECK(reader.fill(pair.theirs.get()).value());
  CHECK(reader.next().value() == std::nullopt);
  CHECK_FALSE(reader.fill(pair.theirs.get()).value());
  CHECK(reader.pending() == 6);
}

TEST_CASE("nothing to read on a non-blocking descriptor is not the end") {
  const Pair pair = socket_pair();
  REQUIRE(::fcntl(pair.theirs.get(), F_SETFL, O_NONBLOCK) == 0);
  FrameReader reader;
  CHECK(reader.fill(pair.theirs.get()).value());
}

TEST_CASE("a frame over the limit is refused before its body is awaited, again and again") {
  const Pair pair = socket_pair();
  REQUIRE(write_all(pair.ours.get(), "\xff\xff\xff\xff", "pair").ok());
  FrameReader reader;
  REQUIRE(reader.fill(pair.theirs.get()).value());
  for (int i = 0; i < 2; ++i) {
    const auto frame = reader.next();
    REQUIRE_FALSE(frame.ok());
    CHECK(frame.error().code == ErrorCode::invalid_input);
  }
  CHECK_FALSE(reader.fill(-1).ok());
}

}  // namespace prefgrid
