// How fast the core alone is: no-op jobs through lease, result and commit, facts built and thrown
// away; and what a large grid costs to submit, to hold and to restore.
//   core_bench [jobs]          (default 100000)
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/core/core.h"

namespace {

using namespace std::chrono;
using prefgrid::Core;
using prefgrid::Effects;
using prefgrid::Event;
using prefgrid::LeaseGrant;
using prefgrid::MonotonicMs;
using prefgrid::WallMs;

constexpr std::uint32_t workers = 8;
constexpr std::uint32_t executors = 2;
constexpr std::size_t drain = 256;  // messages a batch

prefgrid::JobKey key_of(std::uint64_t job) {
  prefgrid::JobKey key;
  for (std::size_t word = 0; word < 4; ++word) {
    std::uint64_t bits = (job + 1) * 0x9e3779b97f4a7c15ull + word;
    bits = (bits ^ (bits >> 31)) * 0xbf58476d1ce4e5b9ull;
    bits ^= bits >> 29;
    std::memcpy(key.bytes.data() + 8 * word, &bits, 8);
  }
  return key;
}

// One `train` job for each hundred `evaluate` jobs if `with_inputs`, else no edges.
std::shared_ptr<prefgrid::CorePlan> make_plan(std::uint32_t jobs, bool with_inputs) {
  auto plan = std::make_shared<prefgrid::CorePlan>();
  plan->kinds = {{"train", 1}, {"evaluate", 1}};
  plan->stages = {"train", "evaluate"};
  plan->jobs.resize(jobs);
  std::uint32_t train = 0;
  for (std::uint32_t i = 0; i < jobs; ++i) {
    prefgrid::CoreJob& job = plan->jobs[i];
    job.key = key_of(i);
    job.first_dependency = static_cast<std::uint32_t>(plan->dependencies.size());
    if (i % 101 == 0) {
      train = i;
      continue;
    }
    job.kind = job.stage = 1;
    job.affinity = with_inputs ? 1 + train : 0;
    job.dependency_count = with_inputs ? 1 : 0;
    if (with_inputs) plan->dependencies.push_back(train);
  }
  return plan;
}

double seconds_since(steady_clock::time_point start) {
  return duration<double>(steady_clock::now() - start).count();
}

struct Pending {
  prefgrid::PeerId peer;
  prefgrid::LeaseId lease;
};

void collect(const Effects& effects, std::vector<Pending>& pending, std::size_t& facts) {
  facts += effects.facts.size();
  for (const auto& send : effects.sends) {
    const auto* leases = std::get_if<prefgrid::SendLeases>(&send);
    if (leases == nullptr) continue;
    for (const LeaseGrant& grant : leases->leases) pending.push_back({leases->peer, grant.id});
  }
}

void run_noops(std::uint32_t jobs, bool with_inputs) {
  Core core;
  std::vector<Pending> pending;
  std::size_t facts = 0;
  MonotonicMs now{0};
  core.react(now, WallMs{0},
             prefgrid::ExperimentSubmitted{prefgrid::ExperimentId{1}, "bench", 0,
                                           make_plan(jobs, with_inputs)});
  const auto start = steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  for (std::uint32_t w = 0; w < workers; ++w) {
    prefgrid::WorkerHello hello;
    hello.name = hello.host = "worker" + std::to_string(w);
    hello.executors = executors;
    hello.kinds = {{"train", 1}, {"evaluate", 1}};
    collect(core.react(now, WallMs{0}, prefgrid::PeerMessage{{hello.name}, hello}), pending, facts);
  }
  std::size_t done = 0;
  std::size_t batches = 0;
  while (!pending.empty()) {
    std::vector<Event> events;
    const std::size_t count = std::min(drain, pending.size());
    for (std::size_t i = 0; i < count; ++i) {
      events.push_back(prefgrid::PeerMessage{pending[i].peer,
                                             prefgrid::ResultMessage{pending[i].lease, {}, {}}});
    }
    pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(count));
    now = now + 1;
    collect(core.react(now, WallMs{0}, std::move(events)), pending, facts);
    done += count;
    ++batches;
  }
  const double seconds = seconds_since(start);
  const double cpu_us = 1e6 * static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  std::printf(
      "%s: %zu jobs in %.3f s = %.0f jobs/s, %.2f us of CPU a job (%zu facts, %zu batches)%s\n",
      with_inputs ? "101-job trees" : "no inputs", done, seconds,
      static_cast<double>(done) / seconds, cpu_us / static_cast<double>(done), facts, batches,
      core.finished(prefgrid::ExperimentId{1}) ? "" : " NOT FINISHED");
}

void large_grid(std::uint32_t jobs) {
  const auto plan = make_plan(jobs, true);
  Core core;
  auto start = steady_clock::now();
  prefgrid::ExperimentSubmitted event{prefgrid::ExperimentId{1}, "bench", 0, plan};
  core.react(MonotonicMs{0}, WallMs{0}, event);
  std::printf("submit %u jobs: %.3f s, %.1f bytes a job\n", jobs, seconds_since(start),
              static_cast<double>(core.memory_bytes()) / jobs);
  prefgrid::JobsRestored restored;
  for (const prefgrid::CoreJob& job : plan->jobs) {
    restored.jobs.push_back(prefgrid::JobFact{job.key, 1, {}, prefgrid::DoneFact{}});
  }
  start = steady_clock::now();
  Core again;
  event.restored = true;
  again.react(MonotonicMs{0}, WallMs{0}, std::move(restored));
  again.react(MonotonicMs{0}, WallMs{0}, event);
  std::printf("restore %u done jobs: %.3f s%s\n", jobs, seconds_since(start),
              again.finished(prefgrid::ExperimentId{1}) ? "" : " NOT FINISHED");
}

}  // namespace

int main(int argc, char** argv) {
  const auto jobs =
      static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100'000);
  run_noops(jobs, false);
  run_noops(jobs, true);
  large_grid(1'000'000);
  return 0;
}
