// What happens to what is printed.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/end_to_end/cli/sandbox.h"

namespace prefgrid {

TEST_CASE("a full disk behind standard output is an error of every verb that prints") {
  const Sandbox sandbox;
  REQUIRE(sandbox.prefgrid("run grid.yaml").status == 0);
  for (const std::string words : {"run grid.yaml", "plan grid.yaml", "status grid", "results grid",
                                  "results grid --json", "jobs grid", "methods", "version",
                                  "--version", "--help", "run --help", "dataset show grid.yaml"}) {
    const Finished run = sandbox.prefgrid(words + " >/dev/full");
    INFO(words, ": ", run.output);
    CHECK(run.status == 1);
    CHECK(run.output == "prefgrid: cannot write to standard output: No space left on device\n");
  }
}

TEST_CASE("a closed standard output is an error, and no file of the store takes its place") {
  const Sandbox sandbox;
  const Finished run = sandbox.prefgrid("run grid.yaml >&-");
  CHECK(run.status == 1);
  CHECK(run.output == "prefgrid: cannot write to standard output: Bad file descriptor\n");
  CHECK(sandbox.prefgrid("results grid").status == 0);  // computed, and the store is whole
}

TEST_CASE("a reader that goes ends a verb without a word") {
  const Sandbox sandbox;
  // The reader has gone before the first line is written.
  for (const std::string words : {"plan grid.yaml", "methods"}) {
    const Finished run = sandbox.shell("exec 3> >(true); wait $!; exec $P " + words + " >&3");
    CHECK(run.status == 141);
    CHECK(run.output == "");
  }
}

TEST_CASE("a run whose reader goes stops, and the next one goes on") {
  const Sandbox sandbox;
  const Finished run = sandbox.shell("$P run grid.yaml | head -n 1; exit ${PIPESTATUS[0]}");
  CHECK(run.status == 141);
  CHECK(run.output == std::to_string(grid_jobs) + " jobs to run\n");
  CHECK(sandbox.prefgrid("run grid.yaml").status == 0);
}

TEST_CASE("every verb that prints can print JSON") {
  const Sandbox sandbox;
  REQUIRE(sandbox.prefgrid("run grid.yaml").status == 0);
  const std::string key = key_in(sandbox.shell("$P jobs grid | sed -n 2p").output);
  for (const std::string words :
       {"plan grid.yaml", "status grid", "results grid", "jobs grid", "jobs grid --state failed",
        "methods", "version", "dataset show grid.yaml", "retry grid", "cancel grid",
        "explain --store runs/grid "}) {
    const bool about_job = words.starts_with("explain");
    const Finished answer = sandbox.prefgrid(words + (about_job ? key : "") + " --json");
    INFO(words, ": ", answer.output);
    CHECK(answer.status == 0);
    CHECK(!nlohmann::json::parse(answer.output, nullptr, false).is_discarded());
  }
}

}  // namespace prefgrid
