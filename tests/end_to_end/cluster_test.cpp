#include <doctest/doctest.h>

#include "tests/end_to_end/workspace.h"

namespace prefgrid {
TEST_CASE("the same spec over tcp with two agents gives the same bytes") {
  if (xorg_missing()) return;
  const Workspace workspace;
  workspace.write("smoke.yaml", smoke_spec());
  const auto store = workspace.path() / "store";
  Process coordinator = Process::piped({program("prefgrid"), "coordinator", "--store",
                                        store.string(), "--listen", "tcp://127.0.0.1:*"},
                                       workspace.path());
  const std::string endpoint = tcp_endpoint(coordinator);
  const auto agent = [&](const std::string& name) {
    return Process({program("prefgrid-worker"), "--connect", endpoint, "--executors", "1", "--name",
                    name, "--cache", (workspace.path() / ("cache-" + name)).string()},
                   workspace.path() / (name + ".log"), workspace.path());
  };
  Process first = agent("first");
  Process second = agent("second");
  const Finished submitted =
      workspace.prefgrid({"submit", "smoke.yaml", "--connect", endpoint, "--wait"});
  INFO(submitted.output);
  REQUIRE(submitted.status == 0);
  const Finished results =
      workspace.prefgrid({"results", "--connect", endpoint, "--out", "from-cluster"});
  INFO(results.output);
  CHECK(results.status == 0);
  CHECK(workspace.file("from-cluster/results.csv") == undisturbed_smoke().csv);
  CHECK(workspace.file("from-cluster/report.html") == undisturbed_smoke().html);
  first.signal(SIGTERM);
  second.signal(SIGTERM);
  CHECK(first.wait() == 0);
  CHECK(second.wait() == 0);
  coordinator.signal(SIGTERM);
  CHECK(coordinator.wait() == 0);
  CHECK(jobs_run_again(store).empty());
}

}  // namespace prefgrid
