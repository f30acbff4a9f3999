#include "coordinator/store/store.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "coordinator/store/keys.h"
#include "tests/coordinator/store/records.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {
namespace {

using testing::done_batch;
using testing::is_absent;
using testing::is_whole;
using testing::key_of;

std::unique_ptr<Store> open_store(const std::filesystem::path& folder) {
  auto store = Store::open(folder);
  REQUIRE_MESSAGE(store.ok(), store.error().message);
  return *std::move(store);
}

std::map<std::string, std::string> bytes_of_files(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[entry.path().string()] = *read_file(entry.path(), 1 << 28);
  }
  return files;
}

ExperimentRecord experiment() {
  ExperimentRecord record;
  record.id = ExperimentId{7};
  record.name = "tiny";
  record.spec = ValueMap{{"seeds", ValueList{1, 2}}, {"rate", 1e-5}};
  record.spec_text = "experiment: tiny\n";
  record.dataset = ValueMap{{"users", ValueList{"no", "0123"}}};
  record.dataset_digest = digest_of("data");
  record.submitted = WallMs{99};
  record.priority = -3;
  record.cancelled = true;
  return record;
}

TEST_CASE("scenario: a store is closed and opened again; every kind of record comes back equal") {
  const TempDir folder;
  JobFailure failure{FailureClass::crash, "signal 11", 11, std::string("tail \xff\0", 7)};
  {
    const auto store = open_store(folder.path());
    StoreBatch batch = done_batch(1);
    batch.experiments.push_back(experiment());
    batch.facts.push_back(JobFact{key_of(2), 3, {1, 2, 0, 0, 1, 0}, LeasedFact{"w2", WallMs{8}}});
    batch.facts.push_back(JobFact{key_of(3), 4, {3, 0, 0, 0, 0, 0}, QuarantinedFact{failure}});
    batch.facts.push_back(EventFact{WallMs{6}, key_of(3), 4, "w2", history::Failed{failure}});
    batch.facts.push_back(EventFact{WallMs{7}, {}, 0, "w2", history::WorkerLeft{"drained"}});
    REQUIRE(store->commit(batch).ok());
  }
  const auto store = open_store(folder.path());
  CHECK(is_whole(*store, 1));
  const auto experiments = store->experiments();
  REQUIRE(experiments.ok());
  REQUIRE(experiments->size() == 1);
  CHECK(experiments->at(0).id == ExperimentId{7});
  CHECK(experiments->at(0).spec == experiment().spec);
  CHECK(experiments->at(0).dataset == experiment().dataset);
  CHECK(experiments->at(0).dataset_digest == digest_of("data"));
  CHECK(experiments->at(0).priority == -3);
  CHECK(experiments->at(0).cancelled);

  const auto leased = store->job(key_of(2));
  REQUIRE((leased.ok() && *leased));
  CHECK((*leased)->failures == FailureCounts{1, 2, 0, 0, 1, 0});
  CHECK(std::get<LeasedFact>((*leased)->state).worker == "w2");
  const auto quarantined = store->job(key_of(3));
  REQUIRE((quarantined.ok() && *quarantined));
  CHECK(std::get<QuarantinedFact>((*quarantined)->state).failure.log_tail == failure.log_tail);

  const auto events = store->events_of(key_of(3));
  REQUIRE((events.ok() && events->size() == 1));
  CHECK(events->at(0).sequence == 2);
  CHECK(std::get<history::Failed>(events->at(0).event.what).failure.message == "signal 11");
  CHECK(*store->log(key_of(3)) == failure.log_tail);
  CHECK(store->sequence() == SequenceRecord{3, 3, 1, 0});
  CHECK(store->findings().empty());
  CHECK(store->check()->empty());
}

TEST_CASE("scenario: a reader opens the store of a coordinator that is gone; no byte changes") {
  const TempDir folder;
  { REQUIRE(open_store(folder.path())->commit(done_batch(1, 100)).ok()); }
  const auto before = bytes_of_files(folder.path());
  {
    const auto store = Store::open_read_only(folder.path());
    REQUIRE_MESSAGE(store.ok(), store.error().message);
    CHECK(is_whole(**store, 100));
    CHECK(is_absent(**store, 101));
  }
  CHECK(bytes_of_files(folder.path()) == before);
  const auto none = Store::open_read_only(folder.path() / "nowhere");
  REQUIRE(!none.ok());
  CHECK(none.error().code == ErrorCode::not_found);
  CHECK(!std::filesystem::exists(folder.path() / "nowhere"));
}

TEST_CASE("scenario: a store of a newer format is refused by name and stays as it was") {
  const TempDir folder;
  { open_store(folder.path()); }
  {
    auto database = Database::open(folder.path() / "db", Database::Mode::read_write);
    REQUIRE(database.ok());
    const MetaRecord newer{store_format_version + 1, "9.9", WallMs{1}};
    REQUIRE(database->write({{Family::meta, std::string(meta_key), encode_record(newer)}}).ok());
  }
  const auto before = bytes_of_files(folder.path() / "db");
  const auto store = Store::open(folder.path());
  REQUIRE(!store.ok());
  CHECK(store.error().code == ErrorCode::conflict);
  CHECK(store.error().message.find("format 2, made by prefgrid 9.9") != std::string::npos);
  CHECK(bytes_of_files(folder.path() / "db") == before);
}

TEST_CASE("scenario: an event in the middle is missing; opening names the hole") {
  const TempDir folder;
  { REQUIRE(open_store(folder.path())->commit(done_batch(1, 10)).ok()); }
  {
    auto database = Database::open(folder.path() / "db", Database::Mode::read_write);
    REQUIRE(database.ok());
    REQUIRE(database->write({{Family::events, number_key(5), std::nullopt}}).ok());
  }
  const auto store = Store::open(folder.path());
  REQUIRE(!store.ok());
  CHECK(store.error().message.find("9 events where its sequence record counts 10") !=
        std::string::npos);
}

TEST_CASE("scenario: small and large artefacts; read in pieces, stored once, damage is found") {
  const TempDir folder;
  const std::string small(70'000, 's');
  std::string large(3 << 20, 'l');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 >> 3);
  const auto store = open_store(folder.path());
  for (const std::string& content : {std::string(), small, large}) {
    const auto digest = store->put_artifact(content);
    REQUIRE_MESSAGE(digest.ok(), digest.error().message);
    REQUIRE(store->put_artifact(content).ok());
    CHECK(**store->artifact_size(*digest) == content.size());
    CHECK(*store->artifact(*digest, 4 << 20) == content);
    std::string pieces;
    while (pieces.size() < content.size()) {
      pieces += *store->read_artifact(*digest, pieces.size(), 4'097);
    }
    CHECK(pieces == content);
    CHECK(store->read_artifact(*digest, content.size() + 5, 10)->empty());
  }
  CHECK(store->sequence().artifact_count == 3);
  CHECK(store->artifact(digest_of("unknown"), 100).error().code == ErrorCode::not_found);
  CHECK(store->artifact(digest_of(large), 100).error().code == ErrorCode::invalid_input);
  CHECK(store->check()->empty());

  const std::string hex = digest_of(large).hex();
  folder.write("artifacts/" + hex.substr(0, 2) + "/" + hex, "x" + large.substr(1));
  CHECK(!store->artifact(digest_of(large), 4 << 20).ok());
  REQUIRE(store->check()->size() == 1);
  CHECK(store->check()->at(0).find(hex) != std::string::npos);
}

TEST_CASE("scenario: any single wrong byte of a record is an error, never another record") {
  const std::string whole = encode_record(experiment());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string wrong = whole;
    wrong[i] = static_cast<char>(wrong[i] ^ 0x10);
    CHECK(!decode_experiment(wrong).ok());
    CHECK(!decode_experiment(whole.substr(0, i)).ok());
  }
  const std::string raw = encode_raw("log");
  for (std::size_t i = 0; i < raw.size(); ++i) {
    CHECK(!decode_raw(raw.substr(0, i)).ok());
  }
  CHECK(*decode_raw(raw) == "log");
}

}  // namespace
}  // namespace prefgrid
