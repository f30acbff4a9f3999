// A coordinator on a thread, tiny plans by hand, and a fake agent that speaks the real protocol.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/limits.h"
#include "common/messages.h"
#include "common/sha256.h"
#include "common/transport.h"
#include "coordinator/loop/client.h"
#include "coordinator/loop/coordinator.h"

namespace prefgrid::testing {

inline constexpr std::chrono::seconds patience{60};  // for what comes within milliseconds

inline Value make_dataset_value() {
  return ValueMap{{"users", ValueList{"u1"}}};
}

// `width` pairs of jobs: "first" reads the dataset, "second" reads its "first".
inline Plan pair_plan(const ExperimentRecord& record) {
  Plan plan;
  plan.experiment = record.name;
  plan.stages = {"first", "second"};
  const std::int64_t width = record.spec.map().at("width").integer();
  for (std::int64_t i = 0; i < width; ++i) {
    PlannedJob first;
    first.spec.kind = "test.first";
    first.spec.parameters = {{"number", i}};
    first.spec.inputs = {{"dataset", record.dataset_digest}};
    first.stage = "first";
    first.key = *job_key(first.spec);
    PlannedJob second;
    second.spec.kind = "test.second";
    second.spec.parameters = {{"number", i}};
    second.spec.inputs = {{"dataset", record.dataset_digest}, {"first", first.key}};
    second.stage = "second";
    second.key = *job_key(second.spec);
    second.dependencies = {static_cast<std::uint32_t>(plan.jobs.size())};
    plan.jobs.push_back(std::move(first));
    plan.jobs.push_back(std::move(second));
  }
  return plan;
}

inline ValueMap submission(const std::string& name, std::int64_t width,
                           const ArtifactDigest& dataset) {
  return {{"name", name},
          {"spec", ValueMap{{"width", width}}},
          {"spec_text", "width: " + std::to_string(width) + "\n"},
          {"dataset", make_dataset_value()},
          {"dataset_digest", dataset.hex()}};
}

class RunningCoordinator {
 public:
  explicit RunningCoordinator(const std::filesystem::path& folder,
                              std::vector<ListenOn> listen = {}) {
    CoordinatorOptions options;
    options.store = folder;
    options.listen = std::move(listen);
    options.planner = [](const ExperimentRecord& record) -> Result<Plan> {
      return pair_plan(record);
    };
    auto started = Coordinator::start(std::move(options));
    REQUIRE_MESSAGE(started.ok(), started.error().message);
    coordinator_ = *std::move(started);
    thread_ = std::thread([this] { outcome_ = coordinator_->run(); });
  }
  ~RunningCoordinator() {
    coordinator_->stop();
    thread_.join();
    CHECK(outcome_.ok());
  }
  Coordinator& operator*() { return *coordinator_; }
  Coordinator* operator->() { return coordinator_.get(); }
  Client client() const {
    auto client = Client::connect(coordinator_->control_endpoints()[0]);
    REQUIRE(client.ok());
    return *std::move(client);
  }

 private:
  std::unique_ptr<Coordinator> coordinator_;
  Result<void> outcome_;
  std::thread thread_;
};

inline Value ask(Client& client, const std::string& verb, const ValueMap& arguments = {}) {
  auto value = client.request(verb, arguments, patience);
  REQUIRE_MESSAGE(value.ok(), verb << ": " << value.error().message);
  return *std::move(value);
}

inline std::int64_t count_of(const Value& progress, const std::string& state) {
  return progress.map().at("counts").map().at(state).integer();
}

// An agent without executors: `work` says what each lease's result is, nullopt keeps it.
class FakeAgent {
 public:
  using Work = std::function<std::optional<JobResult>(const Lease&)>;
  FakeAgent(const std::string& endpoint, std::string name, Work work)
      : name_(std::move(name)), work_(std::move(work)) {
    auto socket = DealerSocket::connect(context_, endpoint);
    REQUIRE(socket.ok());
    socket_ = *std::move(socket);
  }

  void say_hello(std::vector<LeaseId> held = {}) {
    WorkerHello hello;
    hello.name = name_;
    hello.host = "test";
    hello.pid = 4'711;
    hello.executors = 4;
    hello.kinds = {{"test.first", 1}, {"test.second", 1}};
    hello.held = std::move(held);
    send(hello);
  }
  void send(const Message& message) { REQUIRE(socket_->try_send(encode(message))); }

  // Reads and works until `enough`; false: it did not come in time.
  bool run_until(const std::function<bool(const FakeAgent&)>& enough) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!enough(*this)) {
      if (std::chrono::steady_clock::now() > end) return false;
      if (auto frame = socket_->try_receive()) {
        take(*decode_message(*frame));
        continue;
      }
      const auto readable = wait_readable({socket_->poll_fd()}, heartbeat_);
      if (readable.empty()) send(Heartbeat{});
    }
    return true;
  }

  std::size_t settled = 0;
  std::size_t executed = 0;
  std::vector<Lease> kept;
  std::optional<Welcome> welcome;
  std::string refused;

 private:
  void take(const Message& message) {
    if (const auto* leases = std::get_if<Leases>(&message)) {
      for (const Lease& lease : leases->leases) {
        if (seen_.insert(lease.id).second) take(lease);
      }
    } else if (std::holds_alternative<Settled>(message)) {
      ++settled;
    } else if (const auto* hello = std::get_if<Welcome>(&message)) {
      welcome = *hello;
    } else if (const auto* why = std::get_if<Refused>(&message)) {
      refused = why->reason;
    }
  }
  void take(const Lease& lease) {
    auto result = work_(lease);
    if (!result) {
      kept.push_back(lease);
      return;
    }
    ++executed;
    send(ResultMessage{lease.id, *std::move(result), "log of " + lease.spec.kind});
  }

  static constexpr std::chrono::milliseconds heartbeat_{500};
  TransportContext context_;
  std::optional<DealerSocket> socket_;
  std::string name_;
  Work work_;
  std::set<LeaseId> seen_;
};

// What a job of pair_plan leaves behind: its number as a metric, and one small artefact.
inline JobResult result_for(const Lease& lease) {
  JobResult result;
  const std::int64_t number = lease.spec.parameters.at("number").integer();
  result.metrics.push_back({"number", std::nullopt, static_cast<double>(number), 1, 0});
  const std::string content = lease.spec.kind + " " + std::to_string(number);
  ArtifactRef artifact{"out.txt", {}, content.size(), content};
  artifact.digest = digest_of(content);
  result.artifacts.push_back(std::move(artifact));
  return result;
}

}  // namespace prefgrid::testing
