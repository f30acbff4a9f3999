#include <doctest/doctest.h>

#include "common/messages.h"
#include "coordinator/loop/uploads.h"
#include "tests/coordinator/loop/harness.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {
namespace {

using testing::patience;
using testing::RunningCoordinator;

std::string content_of(std::size_t bytes) {
  std::string content(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>((i * 2'654'435'761u) >> 7);
  return content;
}

BulkPutAck put(Uploads& uploads, const std::string& content, const ArtifactDigest& digest,
               std::size_t offset, std::size_t bytes) {
  auto ack = uploads.put({digest, content.size(), offset, content.substr(offset, bytes)});
  REQUIRE(ack);
  return *std::move(ack);
}

TEST_CASE("scenario: chunks come twice, ahead of their turn, and from two peers at once") {
  const TempDir folder;
  const auto store = *Store::open(folder.path());
  Uploads uploads(*store);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{500}, std::size_t{2'000'000}}) {
    const std::string content = content_of(bytes);
    const ArtifactDigest digest = digest_of(content);
    const std::size_t piece = bytes > 1'000'000 ? 200'000 : 100;
    for (std::size_t offset = 0; offset < bytes; offset += piece) {
      if (offset + piece < bytes) {  // ahead of its turn: not taken
        CHECK(put(uploads, content, digest, offset + piece, piece).received == offset);
      }
      const BulkPutAck ack = put(uploads, content, digest, offset, piece);
      CHECK(ack.received == offset + piece);
      CHECK(ack.complete == (offset + piece == bytes));
      CHECK(put(uploads, content, digest, offset, piece).received == offset + piece);
    }
    const BulkPutAck last = put(uploads, content, digest, 0, 0);
    CHECK(last.complete);
    CHECK(last.problem.empty());
    CHECK(*store->artifact(digest, 4 << 20) == content);
  }
}

TEST_CASE("scenario: the coordinator restarts in the middle of a large upload; it goes on there") {
  const TempDir folder;
  const std::string content = content_of(3'000'000);
  const ArtifactDigest digest = digest_of(content);
  {
    const auto store = *Store::open(folder.path());
    Uploads uploads(*store);
    for (std::size_t offset = 0; offset < 1'000'000; offset += 200'000) {
      put(uploads, content, digest, offset, 200'000);
    }
  }
  const auto store = *Store::open(folder.path());
  Uploads uploads(*store);
  CHECK(put(uploads, content, digest, 0, 0).received == 1'000'000);
  for (std::size_t offset = 1'000'000; offset < 3'000'000; offset += 200'000) {
    put(uploads, content, digest, offset, 200'000);
  }
  CHECK(*store->artifact(digest, 4 << 20) == content);
  CHECK(std::filesystem::is_empty(folder.path() / "uploads"));
}

TEST_CASE("scenario: content of another digest, lying sizes and offsets are refused; all is gone") {
  const TempDir folder;
  const auto store = *Store::open(folder.path());
  Uploads uploads(*store);
  const ArtifactDigest digest = digest_of("something else");
  for (const std::size_t bytes : {std::size_t{300'000}, std::size_t{1'300'000}}) {
    const std::string content = content_of(bytes);
    std::optional<BulkPutAck> ack;
    for (std::size_t offset = 0; offset < bytes; offset += 100'000) {
      ack = put(uploads, content, digest, offset, 100'000);
    }
    CHECK(ack->problem.find("digest is not") != std::string::npos);
    CHECK(!ack->complete);
    CHECK(!*store->artifact_size(digest));
    CHECK(std::filesystem::is_empty(folder.path() / "uploads"));
  }
  CHECK(!uploads.put({digest, 10, 8, "abc"})->problem.empty());
  CHECK(!uploads.put({digest, 10, UINT64_MAX - 1, "abc"})->problem.empty());
  CHECK(!uploads.put({digest, UINT64_MAX, 0, "abc"})->problem.empty());
  CHECK(!uploads.put({digest, 1 << 20, 0, std::string(limits::chunk_bytes + 1, 'x')})
             ->problem.empty());
  CHECK(uploads.put({digest, 10, 0, "abc"})->problem.empty());
  CHECK(!uploads.put({digest, 11, 0, "abc"})->problem.empty());
}

TEST_CASE("scenario: more uploads begin than are kept open; each still ends") {
  const TempDir folder;
  const auto store = *Store::open(folder.path());
  Uploads uploads(*store);
  constexpr std::size_t count = concurrent_uploads + 6;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string content = "content " + std::to_string(i);
    put(uploads, content, digest_of(content), 0, 4);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::string content = "content " + std::to_string(i);
    BulkPutAck ack = put(uploads, content, digest_of(content), 4, 100);
    if (!ack.complete) ack = put(uploads, content, digest_of(content), ack.received, 100);
    CHECK(ack.complete);
  }
}

TEST_CASE("scenario: artefacts of every size go up and come down over the wire, by credit") {
  const TempDir folder;
  RunningCoordinator coordinator(folder.path());
  Client client = coordinator.client();
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, limits::chunk_bytes, std::size_t{9'000'001}}) {
    const std::string content = content_of(bytes);
    const auto digest = client.put_artifact(content, patience);
    REQUIRE_MESSAGE(digest.ok(), digest.error().message);
    CHECK(client.put_artifact(content, patience).ok());
    const auto back = client.get_artifact(*digest, 10'000'000, patience);
    REQUIRE_MESSAGE(back.ok(), back.error().message);
    CHECK(*back == content);
  }
  const auto unknown = client.get_artifact(digest_of("unknown"), 100);
  REQUIRE(!unknown.ok());
  CHECK(unknown.error().code == ErrorCode::not_found);
}

}  // namespace
}  // namespace prefgrid
