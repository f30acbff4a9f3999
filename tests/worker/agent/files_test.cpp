// Artefacts on disk and on their way: the cache, the folders, the transfers, and the service that
// ties them together, against a bulk server that loses messages.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "common/random.h"
#include "common/sha256.h"
#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"
#include "worker/agent/bulk_thread.h"
#include "worker/agent/executor_process.h"
#include "worker/agent/file_service.h"
#include "worker/agent/log_ring.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

ArtifactCache open_cache(const TempDir& folder, std::uint64_t bytes = 1 << 30) {
  auto cache = ArtifactCache::open(folder.path() / "cache", bytes);
  REQUIRE(cache.ok());
  return *std::move(cache);
}

ArtifactRef artifact(const std::string& name, const std::string& content) {
  return {name, digest_of(content), content.size(), std::nullopt};
}

TEST_CASE("a cached artefact is found by another process, a damaged one is not") {
  TempDir folder;
  ArtifactCache first = open_cache(folder);
  const ArtifactDigest digest = digest_of("content");
  const auto inserted = first.insert("content", digest);
  REQUIRE(inserted.ok());
  CHECK(open_cache(folder).find(digest, 7) == *inserted);
  CHECK_FALSE(open_cache(folder).find(digest, 8).has_value());  // and it is gone
  REQUIRE(first.insert("content", digest).ok());

  fs::permissions(*inserted, fs::perms::owner_all);
  std::ofstream(*inserted) << "contenT";
  CHECK_FALSE(open_cache(folder).find(digest, 7).has_value());
  CHECK_FALSE(fs::exists(*inserted));
}

TEST_CASE("content under a wrong digest does not enter the cache") {
  TempDir folder;
  ArtifactCache cache = open_cache(folder);
  CHECK_FALSE(cache.insert("content", digest_of("other")).ok());
  CHECK_FALSE(cache.find(digest_of("other"), 7).has_value());
}

TEST_CASE("over its cap the cache loses what was used least recently, never what is in use") {
  TempDir folder;
  ArtifactCache cache = open_cache(folder, 3'500);
  std::vector<ArtifactDigest> digests;
  for (char letter : {'a', 'b', 'c', 'd'}) {
    const std::string content(1'000, letter);
    digests.push_back(digest_of(content));
    REQUIRE(cache.insert(content, digests.back()).ok());
    const timespec used{1'000'000 + letter, 0};  // a is the oldest
    const timespec times[2] = {used, used};
    ::utimensat(AT_FDCWD, cache.object_path(digests.back()).c_str(), times, 0);
  }
  cache.shrink({digests[0]});
  CHECK(cache.find(digests[0], 1'000).has_value());
  CHECK_FALSE(cache.find(digests[1], 1'000).has_value());
  CHECK(cache.find(digests[2], 1'000).has_value());
  CHECK(cache.find(digests[3], 1'000).has_value());
}

TEST_CASE("artefact names that leave the folder are refused") {
  for (const char* name : {"a", "a.bin", "a/b/c", "..a", "a..", "-"}) {
    CHECK_MESSAGE(is_safe_artifact_name(name), name);
  }
  const std::string nul("a\0b", 3);
  const std::string long_name(limits::name_bytes + 1, 'a');
  for (const std::string& name :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string(".."),
        std::string("a/../b"), std::string("./a"), nul, long_name}) {
    CHECK_FALSE_MESSAGE(is_safe_artifact_name(name), name);
  }
}

TEST_CASE("folders of dead agents are removed by the next one, those of living ones are not") {
  TempDir folder;
  ArtifactCache cache = open_cache(folder);
  const fs::path agents = cache.folder() / "agents";
  fs::create_directories(agents / "123-dead" / "out");
  std::ofstream(agents / "123-dead" / "lock") << "";
  const auto first = JobFolders::make(cache.folder());
  REQUIRE(first.ok());
  CHECK_FALSE(fs::exists(agents / "123-dead"));
  const auto second = JobFolders::make(cache.folder());
  REQUIRE(second.ok());
  CHECK(fs::exists(first->output_root()));
  CHECK(fs::exists(second->output_root()));
}

TEST_CASE("an input's folder stays as long as any job uses it") {
  TempDir folder;
  ArtifactCache cache = open_cache(folder);
  const auto object = cache.insert("weights", digest_of("weights"));
  REQUIRE(object.ok());
  auto folders = JobFolders::make(cache.folder());
  REQUIRE(folders.ok());
  const ResolvedInput input{"model", JobKey{}, {artifact("deep/model.bin", "weights")}};
  const auto first = folders->acquire(input, {*object});
  const auto second = folders->acquire(input, {*object});
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->path == second->path);
  fs::remove(*object);  // another agent evicts it
  folders->release(input.id);
  CHECK(fs::file_size(fs::path(first->path) / "deep/model.bin") == 7);
  folders->release(input.id);
  CHECK_FALSE(fs::exists(first->path));
  const auto gone = folders->acquire(input, {*object});
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.error().code == ErrorCode::not_found);
}

// A bulk server in memory that loses and repeats messages as the random stream says.
struct LossyServer {
  std::map<ArtifactDigest, std::string> stored;
  std::map<ArtifactDigest, std::string> partial;
  RandomStream random{test_seed(), "lossy"};
  std::uint64_t loss_percent = 0;

  std::vector<BulkMessage> answers_to(const BulkMessage& message) {
    std::vector<BulkMessage> answers;
    if (const auto* get = std::get_if<BulkGet>(&message)) {
      const std::string& content = stored.at(get->digest);
      BulkChunk chunk{get->digest, content.size(), get->offset, "", ""};
      for (std::uint32_t i = 0; i < get->credit && chunk.offset < content.size(); ++i) {
        chunk.data = content.substr(chunk.offset, limits::chunk_bytes);
        answers.emplace_back(chunk);
        chunk.offset += chunk.data.size();
      }
    } else if (const auto* put = std::get_if<BulkPut>(&message)) {
      std::string& content = partial[put->digest];
      if (put->offset == content.size()) content += put->data;
      const bool complete = content.size() == put->size;
      if (complete) stored[put->digest] = content;
      answers.emplace_back(BulkPutAck{put->digest, content.size(), complete, ""});
    }
    return answers;
  }
  bool lost() { return random.below(100) < loss_percent; }
};

// Runs service and server until there are so many reports; time passes only where nothing moves.
std::vector<FileReport> run(FileService& service, LossyServer& server, std::size_t wanted) {
  MonotonicMs now{1'000};
  std::vector<FileReport> reports;
  for (int round = 0; round < 100'000 && reports.size() < wanted; ++round) {
    const std::vector<BulkMessage> messages = service.outgoing(now);
    for (const BulkMessage& message : messages) {
      if (server.lost()) continue;
      for (const BulkMessage& answer : server.answers_to(message)) {
        const int copies = server.lost() ? 0 : server.lost() ? 2 : 1;
        for (int i = 0; i < copies; ++i) service.on_bulk(answer, now);
      }
    }
    for (FileReport& report : service.take_reports()) reports.push_back(std::move(report));
    const auto deadline = service.next_deadline();
    if (messages.empty() && deadline) now = std::max(now, *deadline);
  }
  return reports;
}

TEST_CASE("transfers both ways survive lost and repeated messages") {
  TempDir folder;
  ArtifactCache cache = open_cache(folder);
  auto folders = JobFolders::make(cache.folder());
  REQUIRE(folders.ok());
  FileService service(std::move(cache), *std::move(folders));
  LossyServer server;
  SUBCASE("none") {
    server.loss_percent = 0;
  }
  SUBCASE("some") {
    server.loss_percent = 10;
  }
  SUBCASE("many") {
    server.loss_percent = 40;
  }

  std::vector<ArtifactRef> artifacts;
  for (int i = 0; i < 7; ++i) {  // more than run at once; sizes around the chunks' edges
    const std::size_t size = i * limits::chunk_bytes * 3 + (i % 3) - (i > 0 ? 1 : 0);
    const std::string content(size, static_cast<char>('a' + i));
    artifacts.push_back(artifact("file" + std::to_string(i), content));
    server.stored[artifacts.back().digest] = content;
  }
  service.prepare({Ticket{1}, {{"model", JobKey{}, artifacts}}}, MonotonicMs{1'000});
  service.prepare({Ticket{2}, {{"model", JobKey{}, artifacts}}}, MonotonicMs{1'000});
  const auto prepared = run(service, server, 2);
  REQUIRE(prepared.size() == 2);
  const auto& inputs = std::get<FilesPrepared>(prepared[0]).inputs;
  REQUIRE(inputs.size() == 1);
  for (const ArtifactRef& file : artifacts) {
    const auto digest = digest_of_file(fs::path(inputs[0].path) / file.name);
    REQUIRE(digest.ok());
    CHECK(*digest == file.digest);
  }

  const fs::path out = fs::path(service.output_root()) / "job";
  fs::create_directories(out);
  JobResult result;
  for (int i = 0; i < 6; ++i) {
    const std::string name = "out" + std::to_string(i);
    std::ofstream(out / name) << std::string(500'000 * i + 1, static_cast<char>('A' + i));
    result.artifacts.push_back({name, {}, 0, std::nullopt});
  }
  service.store({Ticket{1}, out.string(), result}, MonotonicMs{1'000});
  const auto stored = run(service, server, 1);
  REQUIRE(stored.size() == 1);
  const JobResult& done = std::get<FilesStored>(stored[0]).result;
  REQUIRE(done.artifacts.size() == 6);
  CHECK(done.artifacts[0].inline_data == "A");
  for (std::size_t i = 1; i < 6; ++i) {
    REQUIRE(server.stored.contains(done.artifacts[i].digest));
    CHECK(digest_of(server.stored[done.artifacts[i].digest]) == done.artifacts[i].digest);
  }
  service.release({Ticket{1}, out.string()});
  CHECK_FALSE(fs::exists(out));
  CHECK(fs::exists(inputs[0].path));  // job 2 has it
  service.release({Ticket{2}, ""});
  CHECK_FALSE(fs::exists(inputs[0].path));
}

TEST_CASE("a job that is stopped takes its transfers along, and nobody else's") {
  TempDir folder;
  ArtifactCache cache = open_cache(folder);
  auto folders = JobFolders::make(cache.folder());
  REQUIRE(folders.ok());
  FileService service(std::move(cache), *std::move(folders));
  LossyServer server;
  const std::string content(1'000'000, 'x');
  const ArtifactRef shared = artifact("shared", content);
  const ArtifactRef own = artifact("own", std::string(1'000'000, 'y'));
  server.stored[shared.digest] = content;
  const MonotonicMs now{1'000};
  service.prepare({Ticket{1}, {{"a", JobKey{}, {shared, own}}}}, now);
  service.prepare({Ticket{2}, {{"a", JobKey{}, {shared}}}}, now);
  CHECK(service.outgoing(now).size() == 2);
  service.release({Ticket{1}, ""});
  BulkChunk late{own.digest, own.size, 0, std::string(10, 'y'), ""};
  service.on_bulk(late, now);  // nobody waits for it: no matter
  const auto reports = run(service, server, 1);
  REQUIRE(reports.size() == 1);
  CHECK(std::get<FilesPrepared>(reports[0]).ticket == Ticket{2});
  service.release({Ticket{2}, ""});
  CHECK_FALSE(service.next_deadline().has_value());
}

TEST_CASE("artefacts that are no plain files of the job's own folder fail the job") {
  TempDir folder;
  ArtifactCache cache = open_cache(folder);
  auto folders = JobFolders::make(cache.folder());
  REQUIRE(folders.ok());
  FileService service(std::move(cache), *std::move(folders));
  const fs::path out = fs::path(service.output_root()) / "job";
  fs::create_directories(out / "folder");
  folder.write("secret", "secret");
  fs::create_symlink(folder.path() / "secret", out / "link");
  int ticket = 0;
  for (const char* name : {"missing", "folder", "link", "../../secret", "/etc/passwd"}) {
    CAPTURE(name);
    JobResult result;
    result.artifacts.push_back({name, {}, 0, std::nullopt});
    service.store({Ticket(++ticket), out.string(), result}, MonotonicMs{1});
    const auto reports = service.take_reports();
    REQUIRE(reports.size() == 1);
    CHECK(std::holds_alternative<FilesFailed>(reports[0]));
  }
}

TEST_CASE("a bulk endpoint without a host is on the control endpoint's") {
  const auto reach = reachable_endpoint;
  CHECK(reach("tcp://node1:5556", "tcp://:5557") == "tcp://node1:5557");
  CHECK(reach("tcp://node1:5556", "tcp://*:5557") == "tcp://node1:5557");
  CHECK(reach("tcp://[fe80::1]:5556", "tcp://[::]:5557") == "tcp://[fe80::1]:5557");
  CHECK(reach("tcp://node1:5556", "tcp://node2:5557") == "tcp://node2:5557");
  CHECK(reach("ipc:///s/control", "ipc:///s/bulk") == "ipc:///s/bulk");
  CHECK(reach("tcp://node1:5556", "nonsense") == "nonsense");
}

TEST_CASE("the executor's environment is pinned, and respects what has a reason") {
  const std::vector<std::string> base{"HOME=/h", "OMP_NUM_THREADS=64", "OPENBLAS_CORETYPE=Haswell",
                                      "OMP_WAIT_POLICY=active"};
  const auto pinned = executor_environment(base, 2, true);
  const auto has = [&pinned](const std::string& entry) {
    return std::count(pinned.begin(), pinned.end(), entry) == 1;
  };
  CHECK(has("HOME=/h"));
  CHECK(has("OPENBLAS_CORETYPE=Haswell"));
  CHECK(has("OMP_NUM_THREADS=2"));
  CHECK(has("OPENBLAS_NUM_THREADS=2"));
  CHECK(has("MKL_NUM_THREADS=2"));
  CHECK(has("OMP_WAIT_POLICY=passive"));
  CHECK(has("ATEN_CPU_CAPABILITY=avx512"));
  CHECK(pinned.size() == 7);
  const auto chosen = executor_environment({"ATEN_CPU_CAPABILITY=default"}, 1, true);
  CHECK(std::count(chosen.begin(), chosen.end(), "ATEN_CPU_CAPABILITY=default") == 1);
  CHECK(std::count(chosen.begin(), chosen.end(), "ATEN_CPU_CAPABILITY=avx512") == 0);
}

TEST_CASE("a log ring keeps the last bytes, whatever the pieces") {
  RandomStream random(test_seed(), "log");
  std::string all;
  LogRing ring(1'000);
  for (int i = 0; i < 300; ++i) {
    const std::string piece(random.below(i % 10 == 0 ? 3'000 : 30),
                            static_cast<char>('a' + i % 26));
    ring.append(piece);
    all += piece;
  }
  CHECK(ring.take() == all.substr(all.size() - 1'000));
  CHECK(ring.take().empty());
  ring.append("new");
  CHECK(ring.take() == "new");
}

}  // namespace
}  // namespace prefgrid
