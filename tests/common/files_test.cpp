#include "common/files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <iterator>

#include "common/ids.h"
#include "common/sha256.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {

TEST_CASE("read_file gives exactly what was written, up to its limit and not beyond") {
  const TempDir dir;
  const std::string content("a\0b\n", 4);
  const auto file = dir.write("data", content);
  CHECK(read_file(file, 4).value() == content);
  CHECK(read_file(dir.write("empty", ""), 4).value().empty());
  const auto refused = read_file(file, 3);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::invalid_input);
  CHECK(refused.error().message.find("limit of 3 bytes") != std::string::npos);
}

TEST_CASE("read_file tells a missing file, a folder, a pipe and a device apart") {
  const TempDir dir;
  CHECK(read_file(dir.path() / "none", 10).error().code == ErrorCode::not_found);
  CHECK(read_file(dir.path(), 10).error().message.find("is a folder") != std::string::npos);
  REQUIRE(::mkfifo((dir.path() / "pipe").c_str(), 0600) == 0);
  CHECK(read_file(dir.path() / "pipe", 10).error().code == ErrorCode::invalid_input);
  CHECK(read_file("/dev/zero", 10).error().code == ErrorCode::invalid_input);
  const auto under_a_file = read_file(dir.write("file", "x") / "below", 10);
  CHECK(under_a_file.error().code == ErrorCode::not_found);
}

TEST_CASE("write_file_atomic replaces a file whole and leaves nothing else behind") {
  const TempDir dir;
  const auto file = dir.write("out", "old content that is longer");
  REQUIRE(write_file_atomic(file, "new", 0600).ok());
  CHECK(read_file(file, 100).value() == "new");
  struct stat status {};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const std::filesystem::directory_iterator entries(dir.path());
  CHECK(std::distance(begin(entries), end(entries)) == 1);
}

TEST_CASE("write_file_atomic that cannot finish keeps the old state and cleans up") {
  const TempDir dir;
  CHECK(write_file_atomic(dir.path() / "none" / "out", "x").error().code == ErrorCode::not_found);
  std::filesystem::create_directory(dir.path() / "folder");
  CHECK_FALSE(write_file_atomic(dir.path() / "folder", "x").ok());
  const std::filesystem::directory_iterator entries(dir.path());
  CHECK(std::distance(begin(entries), end(entries)) == 1);
}

TEST_CASE("a full disk has its own error code") {
  const Error error = os_error(ENOSPC, "cannot write x");
  CHECK(error.code == ErrorCode::out_of_space);
  CHECK(error.message == "cannot write x: No space left on device");
  CHECK(write_all(-1, "x", "y").error().code == ErrorCode::io);
}

TEST_CASE("a full device refuses a write with out_of_space") {
  if (::access("/dev/full", W_OK) != 0) return;
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full);
  CHECK(write_all(full.get(), "x", "/dev/full").error().code == ErrorCode::out_of_space);
}

TEST_CASE("SHA-256 gives the published digests, in one go, in pieces and of a file") {
  // FIPS 180-2, appendix B.
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  const std::string expected = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
  CHECK(digest_of(two_blocks).hex() == expected);
  CHECK(digest_of("").hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  for (std::size_t cut = 0; cut <= two_blocks.size(); ++cut) {
    Sha256 hash;
    hash.update(std::string_view(two_blocks).substr(0, cut));
    hash.update(std::string_view(two_blocks).substr(cut));
    REQUIRE(ArtifactDigest{hash.finish()}.hex() == expected);
  }
  const TempDir dir;
  CHECK(digest_of_file(dir.write("a", std::string(1'000'000, 'a'))).value().hex() ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(digest_of_file(dir.path()).error().code == ErrorCode::invalid_input);
  CHECK(digest_of_file(dir.path() / "none").error().code == ErrorCode::not_found);
}

TEST_CASE("an id reads back from its digits and from nothing else") {
  const ArtifactDigest id = digest_of("x");
  CHECK(ArtifactDigest::from_hex(id.hex()) == id);
  CHECK(id.short_hex() == id.hex().substr(0, 12));
  std::string upper = id.hex();
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  CHECK(ArtifactDigest::from_hex(upper) == id);
  CHECK_FALSE(ArtifactDigest::from_hex(""));
  CHECK_FALSE(ArtifactDigest::from_hex(id.hex().substr(1)));
  CHECK_FALSE(ArtifactDigest::from_hex(id.hex() + "0"));
  CHECK_FALSE(ArtifactDigest::from_hex("g" + id.hex().substr(1)));
}

}  // namespace prefgrid
