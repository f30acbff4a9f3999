// Durable no-op jobs per second through the real loop: coordinator, store and sockets as in
// production, agents that answer every lease at once. Prints one JSON object.
// Usage: bench_loop [jobs] [agents] [ipc|tcp]
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/messages.h"
#include "common/transport.h"
#include "coordinator/loop/client.h"
#include "coordinator/loop/coordinator.h"
#include "tests/support/temp_dir.h"

namespace {

using prefgrid::Result;

Result<prefgrid::Plan> independent_jobs(const prefgrid::ExperimentRecord& record) {
  prefgrid::Plan plan;
  plan.experiment = record.name;
  plan.stages = {"no-op"};
  const std::int64_t count = record.spec.map().at("jobs").integer();
  for (std::int64_t i = 0; i < count; ++i) {
    prefgrid::PlannedJob job;
    job.spec.kind = "test.noop";
    job.spec.parameters = {{"number", i}};
    job.stage = "no-op";
    PREFGRID_ASSIGN(job.key, prefgrid::job_key(job.spec));
    plan.jobs.push_back(std::move(job));
  }
  return plan;
}

void fail(const std::string& message) {
  std::fprintf(stderr, "bench_loop: %s\n", message.c_str());
  std::exit(1);
}

// Answers leases until all jobs of all agents are settled; repeats what is not, as agents do: a
// router drops what does not fit into a peer's queue.
void serve(const std::string& endpoint, int number, std::atomic<std::int64_t>& left) {
  prefgrid::TransportContext context;
  auto socket = prefgrid::DealerSocket::connect(context, endpoint);
  if (!socket.ok()) fail(socket.error().message);
  prefgrid::WorkerHello hello;
  hello.name = "bench-" + std::to_string(number);
  hello.host = "bench";
  hello.pid = static_cast<std::uint64_t>(number) + 1;
  hello.executors = 16;
  hello.kinds = {{"test.noop", 1}};
  socket->try_send(encode(prefgrid::Message(hello)));
  std::map<prefgrid::LeaseId, std::string> unsettled;
  while (left > 0) {
    const auto frame = socket->try_receive();
    if (!frame) {
      if (prefgrid::wait_readable({socket->poll_fd()}, std::chrono::milliseconds(500)).empty()) {
        socket->try_send(encode(prefgrid::Message(prefgrid::Heartbeat{})));
        for (const auto& [lease, result] : unsettled) socket->try_send(result);
      }
      continue;
    }
    const auto message = prefgrid::decode_message(*frame);
    if (!message.ok()) fail(message.error().message);
    if (const auto* leases = std::get_if<prefgrid::Leases>(&*message)) {
      for (const prefgrid::Lease& lease : leases->leases) {
        prefgrid::ResultMessage result;
        result.lease = lease.id;
        result.result.metrics.push_back({"number", std::nullopt, 1.0, 1, 0});
        std::string answer = encode(prefgrid::Message(result));
        while (!socket->try_send(answer)) std::this_thread::yield();
        unsettled.insert_or_assign(lease.id, std::move(answer));
      }
    } else if (const auto* settled = std::get_if<prefgrid::Settled>(&*message)) {
      left -= static_cast<std::int64_t>(unsettled.erase(settled->lease));
    } else if (const auto* refused = std::get_if<prefgrid::Refused>(&*message)) {
      fail(refused->reason);
    }
  }
}

double thread_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t jobs = argc > 1 ? std::atoll(argv[1]) : 50'000;
  const int agents = argc > 2 ? std::atoi(argv[2]) : 2;
  const bool tcp = argc > 3 && std::strcmp(argv[3], "tcp") == 0;
  const prefgrid::TempDir folder;
  prefgrid::CoordinatorOptions options;
  options.store = folder.path();
  options.planner = independent_jobs;
  if (tcp) options.listen = {{"tcp://127.0.0.1:*", ""}};
  auto coordinator = prefgrid::Coordinator::start(std::move(options));
  if (!coordinator.ok()) fail(coordinator.error().message);
  double cpu_at_end = 0;
  std::thread loop([&] {
    const auto outcome = (*coordinator)->run();
    if (!outcome.ok()) fail(outcome.error().message);
    cpu_at_end = thread_cpu_seconds();
  });
  const std::string endpoint = (*coordinator)->control_endpoints().back();
  auto client = prefgrid::Client::connect(endpoint);
  if (!client.ok()) fail(client.error().message);
  const auto dataset = client->put_artifact("bench");
  if (!dataset.ok()) fail(dataset.error().message);

  const auto before_submission = std::chrono::steady_clock::now();
  const auto submitted = client->request("submit",
                                         {{"name", "bench"},
                                          {"spec", prefgrid::ValueMap{{"jobs", jobs}}},
                                          {"spec_text", ""},
                                          {"dataset", prefgrid::ValueMap{}},
                                          {"dataset_digest", dataset->hex()}},
                                         std::chrono::minutes(5));
  if (!submitted.ok()) fail(submitted.error().message);
  const auto start = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> left{jobs};
  std::vector<std::thread> threads;
  for (int number = 0; number < agents; ++number) {
    threads.emplace_back([&, number] { serve(endpoint, number, left); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const std::chrono::duration<double> submission = start - before_submission;
  (*coordinator)->stop();
  loop.join();
  std::printf(
      "{\"jobs\": %lld, \"agents\": %d, \"transport\": \"%s\", \"submit_s\": %.3f, "
      "\"seconds\": %.3f, \"durable_jobs_per_s\": %.0f, \"coordinator_cpu_ms_per_job\": %.4f}\n",
      static_cast<long long>(jobs), agents, tcp ? "tcp" : "ipc", submission.count(),
      elapsed.count(), static_cast<double>(jobs) / elapsed.count(),
      1'000 * cpu_at_end / static_cast<double>(jobs));
}
