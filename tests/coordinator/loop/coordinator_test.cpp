#include "coordinator/loop/coordinator.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/coordinator/loop/harness.h"
#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {
namespace {

using testing::ask;
using testing::count_of;
using testing::FakeAgent;
using testing::patience;
using testing::result_for;
using testing::RunningCoordinator;
using testing::submission;

TEST_CASE("scenario: a tiny experiment is submitted; an agent gets whole leases; all is done") {
  const TempDir folder;
  RunningCoordinator coordinator(folder.path());
  Client client = coordinator.client();
  const auto dataset = client.put_artifact("the data\n");
  REQUIRE_MESSAGE(dataset.ok(), dataset.error().message);
  const Value submitted = ask(client, "submit", submission("tiny", 3, *dataset));
  CHECK(submitted.map().at("experiment") == Value(1));
  CHECK(submitted.map().at("new") == Value(true));
  CHECK(count_of(submitted.map().at("progress"), "total") == 6);

  std::size_t seconds = 0;
  FakeAgent agent(coordinator->control_endpoints()[0], "w1", [&](const Lease& lease) {
    const auto& inputs = lease.inputs;
    REQUIRE(!inputs.empty());
    CHECK(inputs[0].name == "dataset");
    REQUIRE(inputs[0].artifacts.size() == 1);
    CHECK(inputs[0].artifacts[0].name.empty());
    CHECK(inputs[0].artifacts[0].digest == *dataset);
    CHECK(inputs[0].artifacts[0].inline_data == "the data\n");
    if (lease.spec.kind == "test.second") {
      ++seconds;
      REQUIRE(inputs.size() == 2);
      const std::string number = std::to_string(lease.spec.parameters.at("number").integer());
      CHECK(inputs[1].artifacts.at(0).inline_data == "test.first " + number);
    }
    return std::optional(result_for(lease));
  });
  agent.say_hello();
  REQUIRE(agent.run_until([](const FakeAgent& it) { return it.settled == 6; }));
  CHECK(seconds == 3);
  REQUIRE(agent.welcome);
  CHECK(agent.welcome->bulk_endpoint == coordinator->bulk_endpoints()[0]);
  CHECK(agent.welcome->software_version == PREFGRID_VERSION);

  std::vector<bool> finished;
  REQUIRE(client
              .watch({{"experiment", "tiny"}},
                     [&](const Value& value) {
                       finished.push_back(
                           value.map().at("experiment").map().at("finished").boolean());
                       return true;
                     })
              .ok());
  REQUIRE(!finished.empty());
  CHECK(finished.back());

  // The same again is the same experiment; an unknown dataset is none.
  const Value again = ask(client, "submit", submission("tiny", 3, *dataset));
  CHECK(again.map().at("experiment") == Value(1));
  CHECK(again.map().at("new") == Value(false));
  const auto unknown = client.request("submit", submission("other", 3, digest_of("nothing")));
  REQUIRE(!unknown.ok());
  CHECK(unknown.error().code == ErrorCode::not_found);
  const auto executions = ask(client, "executions", {{"experiment", 1}});
  REQUIRE(executions.map().at("jobs").map().size() == 6);
  for (const auto& [key, counts] : executions.map().at("jobs").map()) {
    CHECK(counts.map().at("leased") == Value(1));
    CHECK(counts.map().at("done") == Value(1));
    CHECK(ask(client, "explain", {{"job", key.substr(0, 12)}}).map().at("state") == Value("done"));
    CHECK(ask(client, "logs", {{"job", key}}).map().at("log").text().starts_with("log of test."));
  }
}

TEST_CASE("scenario: the coordinator stops in the middle; the next one repeats no finished job") {
  const TempDir folder;
  std::size_t executed = 0;
  {
    RunningCoordinator coordinator(folder.path());
    Client client = coordinator.client();
    const auto dataset = client.put_artifact("data");
    REQUIRE(dataset.ok());
    ask(client, "submit", submission("halved", 10, *dataset));
    FakeAgent agent(coordinator->control_endpoints()[0], "w1", [&](const Lease& lease) {
      return executed < 7 ? (++executed, std::optional(result_for(lease))) : std::nullopt;
    });
    agent.say_hello();
    REQUIRE(
        agent.run_until([](const FakeAgent& it) { return it.settled == 7 && !it.kept.empty(); }));
  }
  CHECK(executed == 7);
  {
    const auto offline = OfflineViews::open(
        folder.path(),
        [](const ExperimentRecord& record) -> Result<Plan> { return testing::pair_plan(record); });
    REQUIRE(offline.ok());
    const auto status = answer(standard_queries(), "status", {}, (*offline)->views());
    REQUIRE(status.ok());
    CHECK(count_of(status->map().at("experiments").list().at(0), "done") == 7);
    CHECK(!status->map().at("live").boolean());
  }
  RunningCoordinator coordinator(folder.path());
  Client client = coordinator.client();
  FakeAgent agent(coordinator->control_endpoints()[0], "w2", [&](const Lease& lease) {
    ++executed;
    return std::optional(result_for(lease));
  });
  coordinator->worker_gone("w1", "it went with the first coordinator");
  agent.say_hello();
  REQUIRE(agent.run_until([](const FakeAgent& it) { return it.settled == 13; }));
  CHECK(executed == 20);
  const Value status = ask(client, "status", {{"experiment", "halved"}});
  const Value& progress = status.map().at("experiments").list().at(0);
  CHECK(count_of(progress, "done") == 20);
  CHECK(progress.map().at("finished").boolean());
}

TEST_CASE("scenario: an agent outlives its coordinator, shows the lease it holds and keeps it") {
  const TempDir folder;
  std::vector<Lease> held;
  {
    RunningCoordinator coordinator(folder.path());
    Client client = coordinator.client();
    const auto dataset = client.put_artifact("data");
    ask(client, "submit", submission("kept", 1, *dataset));
    FakeAgent agent(coordinator->control_endpoints()[0], "w1",
                    [](const Lease&) -> std::optional<JobResult> { return std::nullopt; });
    agent.say_hello();
    REQUIRE(agent.run_until([](const FakeAgent& it) { return !it.kept.empty(); }));
    held = agent.kept;
  }
  REQUIRE(held.size() == 1);
  RunningCoordinator coordinator(folder.path());
  FakeAgent agent(coordinator->control_endpoints()[0], "w1",
                  [](const Lease& lease) { return std::optional(result_for(lease)); });
  agent.say_hello({held[0].id});
  REQUIRE(agent.run_until([](const FakeAgent& it) { return it.welcome.has_value(); }));
  CHECK(agent.welcome->dropped.empty());
  agent.send(ResultMessage{held[0].id, result_for(held[0]), ""});
  REQUIRE(agent.run_until([](const FakeAgent& it) { return it.settled == 2; }));
  Client client = coordinator.client();
  const auto executions = ask(client, "executions", {{"job", held[0].id.job.hex()}});
  CHECK(executions.map().at("jobs").map().at(held[0].id.job.hex()).map().at("leased") == Value(1));
}

TEST_CASE("scenario: a thousand frames of garbage arrive; they are counted and work goes on") {
  const TempDir folder;
  RunningCoordinator coordinator(folder.path());
  Client client = coordinator.client();
  TransportContext context;
  auto stranger = DealerSocket::connect(context, coordinator->control_endpoints()[0]);
  auto bulk_stranger = DealerSocket::connect(context, coordinator->bulk_endpoints()[0]);
  REQUIRE((stranger.ok() && bulk_stranger.ok()));
  std::mt19937_64 random(test_seed());
  const std::string whole = encode(Message(Heartbeat{}));
  for (int i = 0; i < 1'000; ++i) {
    std::string frame(random() % 300, '\0');
    for (char& byte : frame) byte = static_cast<char>(random());
    if (i % 4 == 1) frame = whole.substr(0, random() % whole.size());
    if (i % 4 == 2) {
      frame = whole;
      frame[random() % frame.size()] ^= static_cast<char>(1 << random() % 8);
    }
    if (i % 4 == 3) frame = encode(Message(Settled{}));  // a coordinator's own word
    REQUIRE(stranger->try_send(frame));
    bulk_stranger->try_send(frame);
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  std::int64_t bad = 0;
  while (bad < 1'000 && std::chrono::steady_clock::now() < end) {
    bad = ask(client, "status").map().at("counters").map().at("bad_frames").integer();
  }
  CHECK(bad == 1'000);
  CHECK(client.put_artifact("still alive").ok());
}

TEST_CASE("scenario: a second coordinator, a used port, an open network: each is one clear error") {
  const TempDir folder;
  RunningCoordinator first(folder.path(), {{"tcp://127.0.0.1:*", ""}});
  CoordinatorOptions options;
  options.store = folder.path();
  const auto second = Coordinator::start(options);
  REQUIRE(!second.ok());
  CHECK(second.error().message.find("is held by process") != std::string::npos);

  const TempDir other;
  options.store = other.path();
  options.listen = {{first->control_endpoints()[1], ""}};
  const auto used = Coordinator::start(options);
  REQUIRE(!used.ok());
  CHECK(used.error().code == ErrorCode::conflict);
  CHECK(used.error().message.find(first->control_endpoints()[1]) != std::string::npos);

  options.listen = {{"tcp://0.0.0.0:*", ""}};
  const auto open = Coordinator::start(options);
  REQUIRE(!open.ok());
  CHECK(open.error().code == ErrorCode::invalid_input);
}

TEST_CASE("scenario: a client finds the holder by the store's folder, by tcp, and bad verbs fail") {
  const TempDir folder;
  const auto nobody = Client::connect_store(folder.path());
  REQUIRE(!nobody.ok());
  CHECK(nobody.error().code == ErrorCode::not_found);

  // A path that no socket address can hold.
  const std::filesystem::path deep = folder.path() / std::string(120, 'd');
  RunningCoordinator coordinator(deep, {{"tcp://127.0.0.1:*", ""}});
  auto client = Client::connect_store(deep);
  REQUIRE_MESSAGE(client.ok(), client.error().message);
  CHECK(ask(*client, "ping").map().at("store") == Value(deep.string()));
  auto remote = Client::connect(coordinator->control_endpoints()[1]);
  REQUIRE(remote.ok());
  const auto digest = remote->put_artifact(std::string(700'000, 'x'));
  REQUIRE_MESSAGE(digest.ok(), digest.error().message);
  CHECK(client->get_artifact(*digest, 1 << 20)->size() == 700'000);

  const auto unknown = client->request("dance", {});
  REQUIRE(!unknown.ok());
  CHECK(unknown.error().message.find("known: ") != std::string::npos);
  CHECK(client->request("status", {{"experiment", 7}}).error().code == ErrorCode::not_found);
  CHECK(client->request("explain", {{"job", "xyz"}}).error().code == ErrorCode::invalid_input);
  CHECK(client->request("watch", {}).error().code == ErrorCode::not_found);
}

TEST_CASE(
    "scenario: an experiment is cancelled; a restart leaves it so; submitting runs it again") {
  const TempDir folder;
  const auto progress_of = [](Client& client) {
    return ask(client, "status").map().at("experiments").list().at(0);
  };
  std::optional<ArtifactDigest> dataset;
  {
    RunningCoordinator coordinator(folder.path());
    Client client = coordinator.client();
    dataset = *client.put_artifact("data");
    ask(client, "submit", submission("stopped", 2, *dataset));
    // In one cycle or not: the last word counts.
    ask(client, "cancel");
    ask(client, "submit", submission("stopped", 2, *dataset));
    const Value cancelled = ask(client, "cancel", {{"experiment", "stopped"}});
    CHECK(cancelled.map().at("progress").map().at("cancelled") == Value(true));
    CHECK(count_of(cancelled.map().at("progress"), "cancelled") == 4);
  }
  {
    RunningCoordinator coordinator(folder.path());
    Client client = coordinator.client();
    CHECK(progress_of(client).map().at("cancelled") == Value(true));
    const Value again = ask(client, "submit", submission("stopped", 2, *dataset));
    CHECK(again.map().at("experiment") == Value(1));
    CHECK(again.map().at("new") == Value(false));
    CHECK(again.map().at("revived") == Value(true));
  }
  RunningCoordinator coordinator(folder.path());
  Client client = coordinator.client();
  CHECK(ask(client, "status").map().at("experiments").list().size() == 1);
  CHECK(progress_of(client).map().at("cancelled") == Value(false));
  FakeAgent agent(coordinator->control_endpoints()[0], "w1",
                  [](const Lease& lease) { return std::optional(result_for(lease)); });
  agent.say_hello();
  REQUIRE(agent.run_until([](const FakeAgent& it) { return it.settled == 4; }));
  CHECK(count_of(progress_of(client), "done") == 4);
}

TEST_CASE("scenario: a failing job is charged, quarantined, and retried on demand") {
  const TempDir folder;
  RunningCoordinator coordinator(folder.path());
  Client client = coordinator.client();
  const auto dataset = client.put_artifact("data");
  ask(client, "submit", submission("poison", 1, *dataset));
  bool healthy = false;
  FakeAgent agent(coordinator->control_endpoints()[0], "w1",
                  [&](const Lease& lease) -> std::optional<JobResult> {
                    if (healthy) return result_for(lease);
                    JobResult wrong = result_for(lease);
                    wrong.artifacts[0].inline_data->front() = 'x';
                    return wrong;
                  });
  agent.say_hello();
  REQUIRE(agent.run_until([&](const FakeAgent& it) { return it.settled == 3; }));
  const Value status = ask(client, "status");
  const Value& progress = status.map().at("experiments").list().at(0);
  CHECK(count_of(progress, "failed") == 1);
  CHECK(count_of(progress, "blocked") == 1);
  CHECK(progress.map().at("failed_jobs").list().at(0).map().at("message").text().find("out.txt") !=
        std::string::npos);
  healthy = true;
  ask(client, "retry", {{"experiment", "poison"}});
  REQUIRE(agent.run_until([&](const FakeAgent& it) { return it.settled == 5; }));
}

}  // namespace
}  // namespace prefgrid
