#include "coordinator/store/holder.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "coordinator/store/store.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {
namespace {

using std::chrono_literals::operator""ms;

constexpr HolderTimes quick{20ms, 200ms};

// A record as another process would have left it.
nlohmann::json record_of_this_host(const TempDir& folder) {
  auto holder = Holder::acquire(folder.path(), quick);
  REQUIRE(holder.ok());
  return nlohmann::json::parse(*read_file(folder.path() / "holder.json", 10'000));
}

TEST_CASE("scenario: a second coordinator asks for a held store; it is told process and host") {
  const TempDir folder;
  const auto first = Store::open(folder.path());
  REQUIRE(first.ok());
  const auto second = Store::open(folder.path());
  REQUIRE(!second.ok());
  CHECK(second.error().code == ErrorCode::conflict);
  CHECK(second.error().message.find("process " + std::to_string(::getpid()) + " on host ") !=
        std::string::npos);
  REQUIRE((*first)->holder().publish("ipc://a", "tcp://b", "ipc://c").ok());
  const auto live = live_holder(folder.path());
  REQUIRE((live.ok() && *live));
  CHECK((*live)->control_endpoint == "ipc://a");
}

TEST_CASE("scenario: the holder has closed the store; nobody holds it any more") {
  const TempDir folder;
  { REQUIRE(Store::open(folder.path()).ok()); }
  CHECK(!*live_holder(folder.path()));
  CHECK(Store::open(folder.path()).ok());
}

TEST_CASE("scenario: the holder was killed, or its pid is another process now; it is replaced") {
  const TempDir folder;
  auto record = record_of_this_host(folder);
  SUBCASE("the pid is gone") {
    record["pid"] = 4'194'305;
  }
  SUBCASE("the pid belongs to a process that started at another time") {
    record["pid"] = ::getppid();
    record["start_ticks"] = 1;
  }
  SUBCASE("the host has restarted") {
    record["boot_id"] = "another";
  }
  SUBCASE("the record is torn") {
    folder.write("holder.json", record.dump().substr(0, 20));
    CHECK(Holder::acquire(folder.path(), quick).ok());
    return;
  }
  folder.write("holder.json", record.dump());
  CHECK(!*live_holder(folder.path(), quick));
  CHECK(Holder::acquire(folder.path(), quick).ok());
}

TEST_CASE("scenario: the record names a live process although the lock is free; it is refused") {
  const TempDir folder;
  auto record = record_of_this_host(folder);
  record["pid"] = ::getppid();
  std::string stat;
  {
    std::ifstream stream("/proc/" + std::to_string(::getppid()) + "/stat");
    std::getline(stream, stat);
  }
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  record["start_ticks"] = std::stoull(field);
  folder.write("holder.json", record.dump());
  const auto refused = Holder::acquire(folder.path(), quick);
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("process " + std::to_string(::getppid())) !=
        std::string::npos);
}

TEST_CASE("scenario: the record names another host; silent means gone, a beat means alive") {
  const TempDir folder;
  auto record = record_of_this_host(folder);
  record["host"] = "elsewhere";
  const auto file = folder.write("holder.json", record.dump());
  SUBCASE("silent") {
    CHECK(Holder::acquire(folder.path(), quick).ok());
  }
  SUBCASE("beating") {
    std::atomic<bool> stop = false;
    std::thread other([&] {
      for (int beat = 0; !stop; ++beat) {
        std::filesystem::last_write_time(
            file, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(beat));
        std::this_thread::sleep_for(20ms);  // the other host's clock, not a wait for an event
      }
    });
    const auto refused = Holder::acquire(folder.path(), {20ms, 5'000ms});
    stop = true;
    other.join();
    REQUIRE(!refused.ok());
    CHECK(refused.error().message.find("on host elsewhere") != std::string::npos);
  }
}

}  // namespace
}  // namespace prefgrid
