// Verbs that talk to a coordinator.
#include <doctest/doctest.h>

#include <chrono>

#include "tests/end_to_end/cli/sandbox.h"

namespace prefgrid {
namespace {

Process worker_of(const Sandbox& sandbox, const std::string& endpoint) {
  return Process({sandbox.program("prefgrid-worker").string(), "--connect", endpoint, "--executors",
                  "1", "--name", "w", "--cache", (sandbox.path() / "cache").string()},
                 sandbox.path() / "worker.log", sandbox.path());
}

}  // namespace

TEST_CASE("retry and cancel reach the live holder of a store by its folder or its endpoint") {
  const Sandbox sandbox;
  const Process coordinator = sandbox.coordinator("s");
  const std::string endpoint = "ipc://" + (sandbox.path() / "s/control").string();
  {
    const FailingJobs failing("train.lore");
    const Process worker = worker_of(sandbox, endpoint);
    const Finished submitted = sandbox.prefgrid("submit grid.yaml --store s --wait");
    INFO(submitted.output);
    CHECK(submitted.status == 3);
  }
  const Finished retry = sandbox.prefgrid("retry grid --connect " + endpoint);
  CHECK(retry.output == "grid: 1 failed job may run again, and 14 that waited for them\n");
  const Process worker = worker_of(sandbox, endpoint);
  CHECK(sandbox.prefgrid("submit grid.yaml --store s --wait").status == 0);
  CHECK(contains(sandbox.prefgrid("cancel grid --store s").output, "grid: cancelled; 47 results"));
  CHECK(contains(sandbox.file("worker.log"), "1 executor of 1 thread for the coordinator at " +
                                                 endpoint + "; connecting as w\n"));
  CHECK(contains(sandbox.file("worker.log"), "joined the coordinator at " + endpoint + " as w\n"));
}

TEST_CASE("a socket that is not there is refused at once") {
  const Sandbox sandbox;
  const auto start = std::chrono::steady_clock::now();
  for (const std::string verb : {"status", "results", "jobs", "retry", "cancel", "explain 0123ab",
                                 "logs 0123ab", "submit grid.yaml", "plan grid.yaml"}) {
    const Finished run = sandbox.prefgrid(verb + " --connect ipc:///nowhere/control");
    CAPTURE(verb);
    CHECK(run.status == 2);
    CHECK(run.output ==
          "prefgrid: no coordinator listens at ipc:///nowhere/control: no such socket\n");
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

TEST_CASE("a coordinator that does not answer is named while a verb waits for it") {
  const Sandbox sandbox;
  const Process waiting = Process::piped(
      {"/bin/bash", "-c",
       "exec " + sandbox.program("prefgrid").string() + " status --connect tcp://127.0.0.1:1 2>&1"},
      sandbox.path());
  CHECK(waiting.read_line() ==
        "prefgrid: waiting for the coordinator at tcp://127.0.0.1:1 (up to 30 s)");
}

}  // namespace prefgrid
