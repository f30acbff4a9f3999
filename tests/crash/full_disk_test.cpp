// A disk that fills up and gets room again: a tmpfs of its own, so only where this process may
// mount one.
#include <doctest/doctest.h>

#include "coordinator/store/disk.h"
#include "tests/coordinator/loop/harness.h"
#include "tests/coordinator/store/records.h"
#include "tests/support/small_disk.h"

namespace prefgrid {
namespace {

using testing::ask;
using testing::done_batch;
using testing::FakeAgent;
using testing::is_whole;
using testing::patience;
using testing::result_for;
using testing::RunningCoordinator;
using testing::submission;

TEST_CASE("scenario: the disk is almost full at the start; the refusal says how much is missing") {
  const SmallDisk disk(160);
  if (!disk.mounted()) return;
  disk.fill(10 << 20);
  const auto store = Store::open(disk.store());
  REQUIRE(!store.ok());
  CHECK(store.error().code == ErrorCode::out_of_space);
  CHECK(store.error().message.find("needs 64 MiB") != std::string::npos);
  CHECK(!std::filesystem::exists(disk.store()));
}

TEST_CASE("scenario: a store stops on a small disk; its ballast counts when it opens again") {
  const SmallDisk disk(160);
  if (!disk.mounted()) return;
  { REQUIRE(Store::open(disk.store()).ok()); }
  disk.fill(limits::free_bytes_to_start - (16 << 20));
  CHECK(Store::open(disk.store()).ok());
}

TEST_CASE(
    "scenario: the disk fills up while batches are written and gets room again; all are there "
    "once") {
  const SmallDisk disk(160);
  if (!disk.mounted()) return;
  const auto store = *Store::open(disk.store());
  CHECK(std::filesystem::file_size(disk.store() / "ballast") == ballast_bytes);
  disk.fill(128 << 10);
  std::uint64_t number = 0;
  Result<void> outcome;
  while (outcome.ok() && number < 100'000) outcome = store->commit(done_batch(++number, 1));
  REQUIRE(!outcome.ok());
  CHECK(outcome.error().code == ErrorCode::out_of_space);
  CHECK(store->out_of_space());
  CHECK(is_whole(*store, 1));  // reading goes on
  CHECK(!*store->recover());   // there is no room yet, and the ballast is kept for later
  CHECK(store->put_artifact("x").error().code == ErrorCode::out_of_space);
  disk.make_room();
  const auto recovered = store->recover();
  REQUIRE_MESSAGE(recovered.ok(), recovered.error().message);
  CHECK(*recovered);
  CHECK(is_whole(*store, number));
  REQUIRE(store->commit(done_batch(number + 1)).ok());
  CHECK(store->sequence().event_count == number + 1);
  CHECK(store->check()->empty());
  CHECK(std::filesystem::exists(disk.store() / "ballast"));
}

TEST_CASE("scenario: the disk is full under a running coordinator; it says so and goes on later") {
  const SmallDisk disk(160);
  if (!disk.mounted()) return;
  RunningCoordinator coordinator(disk.store());
  Client client = coordinator.client();
  const auto dataset = client.put_artifact("data");
  REQUIRE(dataset.ok());
  ask(client, "submit", submission("patient", 2, *dataset));
  disk.fill(0);
  // An artefact that has no room, and is sent until it has.
  std::optional<Result<ArtifactDigest>> uploaded;
  std::thread uploader([&] {
    Client other = coordinator.client();
    uploaded = other.put_artifact(std::string(8 << 20, 'u'), patience);
  });
  const auto end = std::chrono::steady_clock::now() + patience;
  bool full = false;
  while (!full && std::chrono::steady_clock::now() < end) {
    full = ask(client, "status").map().at("disk_full").boolean();
  }
  CHECK(full);
  disk.make_room();
  uploader.join();
  REQUIRE(uploaded);
  CHECK_MESSAGE(uploaded->ok(), (uploaded->ok() ? "" : uploaded->error().message));
  FakeAgent agent(coordinator->control_endpoints()[0], "w1",
                  [](const Lease& lease) { return std::optional(result_for(lease)); });
  agent.say_hello();
  REQUIRE(agent.run_until([](const FakeAgent& it) { return it.settled == 4; }));
  CHECK(!ask(client, "status").map().at("disk_full").boolean());
}

}  // namespace
}  // namespace prefgrid
