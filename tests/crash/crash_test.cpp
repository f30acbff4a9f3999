// kill -9 at any moment, and damage to any file: no acknowledged record is lost by the first, and
// the second is never read as data.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <random>

#include "tests/coordinator/store/records.h"
#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {
namespace {

using testing::done_batch;
using testing::is_absent;
using testing::is_whole;

constexpr const char* writer_program = PREFGRID_BUILD_DIR "/tests/crash_writer";

// The writer, a line of output for each acknowledged number.
class Writer {
 public:
  Writer(const std::filesystem::path& folder, std::uint64_t first, std::uint64_t last) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const std::string first_text = std::to_string(first);
    const std::string last_text = std::to_string(last);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl(writer_program, writer_program, folder.c_str(), first_text.c_str(), last_text.c_str(),
              nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = Descriptor(ends[0]);
  }
  ~Writer() {
    if (pid_ > 0) kill_and_collect();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Reads until `lines` more lines have come; false: the writer ended.
  bool wait_for(std::size_t lines) {
    while (lines > 0) {
      char byte = 0;
      if (::read(output_.get(), &byte, 1) != 1) return false;
      take(byte);
      if (byte == '\n') --lines;
    }
    return true;
  }
  // The last acknowledged number.
  std::uint64_t kill_and_collect() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    char byte = 0;
    while (::read(output_.get(), &byte, 1) == 1) take(byte);
    return last_;
  }

 private:
  void take(char byte) {
    if (byte == '\n') {
      last_ = std::stoull(line_);
      line_.clear();
    } else {
      line_.push_back(byte);
    }
  }
  pid_t pid_ = -1;
  Descriptor output_;
  std::string line_;
  std::uint64_t last_ = 0;
};

TEST_CASE("scenario: a writer is killed again and again; what it was answered for is there") {
  const TempDir folder;
  std::mt19937_64 random(test_seed());
  std::uint64_t last = 0;
  for (int round = 0; round < 12; ++round) {
    Writer writer(folder.path(), last + 1, last + 1'000'000);
    REQUIRE(writer.wait_for(1 + random() % 60));
    ::usleep(static_cast<useconds_t>(random() % 3'000));  // to be killed in any phase of a commit
    const std::uint64_t acknowledged = writer.kill_and_collect();
    REQUIRE(acknowledged > last);
    const auto store = Store::open_read_only(folder.path());
    REQUIRE_MESSAGE(store.ok(), store.error().message);
    CHECK((*store)->findings().empty());
    for (std::uint64_t number = 1; number <= acknowledged; ++number) {
      REQUIRE(is_whole(**store, number));
      if (number % 16 == 0) {
        const auto digest = digest_of(std::to_string(number) + std::string(40'000, 'a'));
        REQUIRE((*store)->artifact(digest, 1 << 20).ok());
      }
    }
    // One more may have been written without an answer, whole; never two, never a part.
    last = acknowledged + (is_whole(**store, acknowledged + 1) ? 1 : 0);
    CHECK(is_absent(**store, last + 1));
    CHECK((*store)->check()->empty());
  }
}

std::vector<std::filesystem::path> files_with(const std::filesystem::path& folder,
                                              const std::string& extension) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "db")) {
    if (entry.path().extension() == extension && entry.file_size() > 0) {
      files.push_back(entry.path());
    }
  }
  return files;
}

void copy_store(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::remove_all(to);
  std::filesystem::create_directories(to);
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    if (entry.path().filename() == "ballast" || entry.path().filename() == "holder.json") continue;
    std::filesystem::copy(entry.path(), to / entry.path().filename(),
                          std::filesystem::copy_options::recursive);
  }
}

enum class Opened { refused, short_and_said, whole };

// Opens a damaged copy: it refuses with a reason, or what it shows is a true prefix of what was
// written, and a loss is said.
Opened open_damaged(const std::filesystem::path& folder, std::uint64_t written) {
  const auto store = Store::open(folder);
  if (!store.ok()) {
    CHECK(store.error().message.find(folder.string()) != std::string::npos);
    return Opened::refused;
  }
  std::uint64_t present = 0;
  bool read_error = false;
  for (std::uint64_t number = 1; number <= written; ++number) {
    if (is_whole(**store, number)) {
      CHECK(present == number - 1);
      present = number;
    } else if (!is_absent(**store, number)) {
      read_error = true;  // an error at reading, never other content
    }
  }
  if (read_error) {
    CHECK(!(*store)->check()->empty());
    return Opened::refused;
  }
  CHECK((*store)->sequence().result_count == present);
  if (present == written) return Opened::whole;
  REQUIRE(!(*store)->findings().empty());
  CHECK((*store)->findings()[0].find("events " + std::to_string(present + 1) + " to ") !=
        std::string::npos);
  REQUIRE((*store)->commit(done_batch(written + 1)).ok());  // and it goes on from there
  CHECK(is_whole(**store, written + 1));
  return Opened::short_and_said;
}

constexpr std::uint64_t written = 40;

// A store of exactly `written` records, all in its write-ahead log, as a killed coordinator leaves
// it.
void write_and_kill(const std::filesystem::path& folder) {
  Writer writer(folder, 1, written);
  REQUIRE(writer.wait_for(written));
  REQUIRE(writer.kill_and_collect() == written);
}

TEST_CASE(
    "scenario: the write-ahead log is cut at many lengths; its whole batches open, and the "
    "loss is said") {
  const TempDir folder;
  const TempDir copy;
  write_and_kill(folder.path() / "store");
  const auto logs = files_with(folder.path() / "store", ".log");
  REQUIRE(logs.size() == 1);
  const auto size = std::filesystem::file_size(logs[0]);
  std::mt19937_64 random(test_seed());
  std::size_t cut_short = 0;
  for (int i = 0; i < 24; ++i) {
    const std::filesystem::path damaged = copy.path() / "store";
    copy_store(folder.path() / "store", damaged);
    const std::uint64_t length = i == 0 ? 0 : random() % size;
    std::filesystem::resize_file(damaged / "db" / logs[0].filename(), length);
    cut_short += open_damaged(damaged, written) == Opened::short_and_said;
  }
  CHECK(cut_short > 12);  // a cut end is repaired, not refused
}

TEST_CASE(
    "scenario: a block or a bit in the middle of the write-ahead log is wrong; it is refused") {
  const TempDir folder;
  const TempDir copy;
  write_and_kill(folder.path() / "store");
  const auto logs = files_with(folder.path() / "store", ".log");
  REQUIRE(logs.size() == 1);
  const auto size = std::filesystem::file_size(logs[0]);
  std::mt19937_64 random(test_seed());
  std::size_t refused = 0;
  for (int i = 0; i < 24; ++i) {
    const std::filesystem::path damaged = copy.path() / "store";
    copy_store(folder.path() / "store", damaged);
    const std::filesystem::path file = damaged / "db" / logs[0].filename();
    std::string content = *read_file(file, 1 << 28);
    const std::size_t at = random() % (size / 2);
    if (i % 2 == 0) {
      content.replace(at, 512, std::string(std::min<std::size_t>(512, size - at), '\0'));
    } else {
      content[at] = static_cast<char>(content[at] ^ (1 << random() % 8));
    }
    std::ofstream(file, std::ios::binary) << content;
    refused += open_damaged(damaged, written) == Opened::refused;
  }
  CHECK(refused > 20);  // zeros may fall upon zeros
}

TEST_CASE("scenario: tables, blobs and the manifest are cut or zeroed; never other data") {
  const TempDir folder;
  const TempDir copy;
  write_and_kill(folder.path() / "store");
  { REQUIRE(Store::open(folder.path() / "store").ok()); }  // flushes the log into tables
  std::vector<std::filesystem::path> files = files_with(folder.path() / "store", ".sst");
  for (const auto& blob : files_with(folder.path() / "store", ".blob")) files.push_back(blob);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "store" / "db")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("MANIFEST") || name == "CURRENT") files.push_back(entry.path());
  }
  REQUIRE(files.size() > 4);
  std::mt19937_64 random(test_seed());
  std::size_t noticed = 0;
  std::size_t tries = 0;
  for (const auto& file : files) {
    for (int i = 0; i < 3; ++i) {
      const std::filesystem::path damaged = copy.path() / "store";
      copy_store(folder.path() / "store", damaged);
      const std::filesystem::path target = damaged / "db" / file.filename();
      const auto size = std::filesystem::file_size(target);
      if (i == 0) {
        std::filesystem::resize_file(target, random() % size);
      } else if (i == 1) {
        std::filesystem::remove(target);
      } else {
        std::string content = *read_file(target, 1 << 28);
        const std::size_t at = random() % content.size();
        content.replace(at, 256, std::string(std::min<std::size_t>(256, size - at), '\0'));
        std::ofstream(target, std::ios::binary) << content;
      }
      ++tries;
      const auto store = Store::open(damaged);
      if (!store.ok() || !(*store)->check()->empty()) ++noticed;
      if (!store.ok()) continue;
      for (std::uint64_t number = 1; number <= written; ++number) {
        const auto result = (*store)->result(testing::key_of(number));
        if (result.ok() && *result) CHECK((*result)->result.duration_ms == number);
      }
    }
  }
  CHECK(noticed * 10 >= tries * 8);  // zeros may fall upon zeros or padding
}

}  // namespace
}  // namespace prefgrid
