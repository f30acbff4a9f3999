// A disk that has no room for what the agent's file service, and its jobs, want to write.
#include "worker/agent/disk_room.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "common/sha256.h"
#include "tests/support/temp_dir.h"
#include "worker/agent/file_service.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

ArtifactCache open_cache(const TempDir& folder) {
  auto cache = ArtifactCache::open(folder.path() / "cache", 1 << 30);
  REQUIRE(cache.ok());
  return *std::move(cache);
}

ArtifactRef input_of(const std::string& content) {
  return {"", digest_of(content), content.size(), content};
}

// A service whose disk has as much room as the test says.
struct RoomyService {
  std::uint64_t room = 1ull << 40;
  TempDir folder;
  FileService service{open_cache(folder), *JobFolders::make(folder.path() / "cache"),
                      [this] { return room; }};
  MonotonicMs now{1'000'000};

  template <class T>
  std::vector<T> reports() {
    std::vector<T> found;
    for (FileReport& report : service.take_reports()) {
      if (auto* wanted = std::get_if<T>(&report)) found.push_back(std::move(*wanted));
    }
    return found;
  }
  bool no_room(bool says_no_room) {
    service.judge({Ticket{1}, says_no_room}, now);
    const auto judged = reports<FailureJudged>();
    REQUIRE(judged.size() == 1);
    return judged[0].no_room;
  }
};

TEST_CASE("a failure is for want of room where little is left, or where it says so and not ample") {
  RoomyService disk;
  CHECK_FALSE(disk.no_room(false));
  CHECK_FALSE(disk.no_room(true));
  CHECK_FALSE(disk.service.next_look());
  SUBCASE("ample") {
    disk.room = limits::ample_room_bytes;
  }
  SUBCASE("some") {
    disk.room = limits::least_room_bytes;
    CHECK_FALSE(disk.no_room(false));
    CHECK(disk.no_room(true));
    return;
  }
  SUBCASE("little") {
    disk.room = limits::least_room_bytes - 1;
    CHECK(disk.no_room(false));
    CHECK(disk.no_room(true));
    return;
  }
  CHECK_FALSE(disk.no_room(false));
  CHECK_FALSE(disk.no_room(true));
}

TEST_CASE("a full disk is looked at every second; lost again soon, it is trusted later and later") {
  RoomyService disk;
  std::int64_t waited = 0;
  for (int round = 0; round < 10; ++round) {
    disk.room = 0;
    disk.service.judge({Ticket{1}, false}, disk.now);
    REQUIRE(disk.service.next_look().has_value());
    CHECK(*disk.service.next_look() - disk.now >= waited);
    waited = *disk.service.next_look() - disk.now;
    CHECK(waited <= limits::room_max_ms);
    CHECK(disk.reports<RoomLost>().size() == 1);
    disk.service.judge({Ticket{1}, false}, disk.now);
    CHECK(disk.reports<RoomLost>().empty());  // said once

    disk.now = *disk.service.next_look();
    disk.service.look_for_room(disk.now);
    CHECK(disk.reports<RoomFound>().empty());
    CHECK(disk.service.next_deadline() == disk.now + limits::room_first_ms);
    disk.room = limits::least_room_bytes;
    disk.service.look_for_room(disk.now);  // before its time: does not look
    CHECK(disk.reports<RoomFound>().empty());
    disk.now = disk.now + limits::room_first_ms;
    disk.service.look_for_room(disk.now);
    CHECK(disk.reports<RoomFound>().size() == 1);
    CHECK_FALSE(disk.service.next_look());
  }
  CHECK(waited == limits::room_max_ms);
  disk.now = disk.now + limits::room_lasts_ms;
  disk.room = 0;
  disk.service.judge({Ticket{1}, false}, disk.now);
  CHECK(*disk.service.next_look() - disk.now == limits::room_first_ms);
}

TEST_CASE("on a full disk the cache gives way, but not what a job uses") {
  RoomyService disk;
  ArtifactCache cache = open_cache(disk.folder);
  const auto unused = cache.insert("nobody's", digest_of("nobody's"));
  REQUIRE(unused.ok());
  const ArtifactRef used = input_of("in use");
  disk.service.prepare({Ticket{7}, {{"dataset", used.digest, {used}}}}, disk.now);
  REQUIRE(disk.reports<FilesPrepared>().size() == 1);
  disk.room = 0;
  disk.service.judge({Ticket{1}, false}, disk.now);
  CHECK_FALSE(fs::exists(*unused));
  CHECK(fs::exists(cache.object_path(used.digest)));
}

// A tmpfs without inodes: every new file and folder is refused, as on a full disk.
class FewInodes {
 public:
  FewInodes() {
    mounted_ = ::mount("tmpfs", path().c_str(), "tmpfs", 0, "size=64m,nr_inodes=200") == 0;
    if (!mounted_) std::puts("skipped: this process may not mount a tmpfs");
  }
  ~FewInodes() {
    if (mounted_) ::umount2(path().c_str(), MNT_DETACH);
  }
  FewInodes(const FewInodes&) = delete;
  FewInodes& operator=(const FewInodes&) = delete;

  bool mounted() const { return mounted_; }
  const fs::path& path() const { return folder_.path(); }
  void use_up() {
    while (true) {
      const fs::path file = path() / ("filler-" + std::to_string(fillers_));
      const Descriptor made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
      if (!made) return;
      ++fillers_;
    }
  }
  void give_back() {
    while (fillers_ > 0) fs::remove(path() / ("filler-" + std::to_string(--fillers_)));
  }

 private:
  TempDir folder_;
  bool mounted_ = false;
  int fillers_ = 0;
};

TEST_CASE("outputs that find no room wait where they are, and are stored once there is some") {
  FewInodes disk;
  if (!disk.mounted()) return;
  auto cache = ArtifactCache::open(disk.path() / "cache", 1 << 30);
  REQUIRE(cache.ok());
  auto folders = JobFolders::make(cache->folder());
  REQUIRE(folders.ok());
  const fs::path output = folders->output_root() / "job";
  fs::create_directories(output);
  JobResult result;
  for (const char* name : {"a.json", "b.json", "c.json"}) {
    std::ofstream(output / name) << "content of " << name;
    result.artifacts.push_back({name, {}, 0, std::nullopt});
  }
  FileService service(*std::move(cache), *std::move(folders));
  MonotonicMs now{1'000};
  disk.use_up();
  service.store({Ticket{1}, output.string(), result}, now);
  const ArtifactRef input = input_of("an input");
  service.prepare({Ticket{2}, {{"dataset", input.digest, {input}}}}, now);
  auto reports = service.take_reports();
  REQUIRE(reports.size() == 2);  // room lost, and the input's failure; nothing about the outputs
  CHECK(std::holds_alternative<RoomLost>(reports[0]));
  REQUIRE(std::holds_alternative<FilesFailed>(reports[1]));
  CHECK(std::get<FilesFailed>(reports[1]).error.code == ErrorCode::out_of_space);
  now = *service.next_look();
  service.look_for_room(now);
  CHECK(service.take_reports().empty());

  disk.give_back();
  now = *service.next_look();
  service.look_for_room(now);
  reports = service.take_reports();
  REQUIRE(reports.size() == 2);
  CHECK(std::holds_alternative<RoomFound>(reports[0]));
  REQUIRE(std::holds_alternative<FilesStored>(reports[1]));
  const auto& stored = std::get<FilesStored>(reports[1]).result.artifacts;
  REQUIRE(stored.size() == 3);
  CHECK(stored[2].inline_data == "content of c.json");
}

TEST_CASE("an agent's folders that find no room are an error that says to wait") {
  FewInodes disk;
  if (!disk.mounted()) return;
  disk.use_up();
  const auto none = ArtifactCache::open(disk.path() / "cache", 1 << 30);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code == ErrorCode::out_of_space);
  disk.give_back();
  const auto cache = ArtifactCache::open(disk.path() / "cache", 1 << 30);
  REQUIRE(cache.ok());
  disk.use_up();
  const auto folders = JobFolders::make(cache->folder());
  REQUIRE_FALSE(folders.ok());
  CHECK(folders.error().code == ErrorCode::out_of_space);
  CHECK(room_in(disk.path()) == 0);
}

TEST_CASE("the room of a folder is that of its disk, and the probe leaves nothing behind") {
  TempDir folder;
  const auto space = fs::space(folder.path());
  CHECK(room_in(folder.path()) > space.available / 2);
  CHECK(fs::is_empty(folder.path()));
  CHECK(room_in(folder.path() / "nowhere") > limits::ample_room_bytes);  // cannot be asked
}

}  // namespace
}  // namespace prefgrid
