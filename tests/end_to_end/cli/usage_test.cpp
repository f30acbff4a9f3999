#include <doctest/doctest.h>

#include "tests/end_to_end/cli/sandbox.h"

namespace prefgrid {

TEST_CASE("a wrong command line is one line that names the mistake and where to read") {
  const Sandbox sandbox;
  struct Wrong {
    std::string words;
    std::string said;
  };
  for (const Wrong& wrong : std::vector<Wrong>{
           {"", "say what to do: run, plan, coordinator, "},
           {"pln grid.yaml", "unknown verb \"pln\", did you mean \"plan\"? See `prefgrid --help`"},
           {"run", "SPEC is missing; see `prefgrid run --help`"},
           {"run grid.yaml more", "unexpected argument \"more\"; see `prefgrid run --help`"},
           {"run grid.yaml --stor x",
            "unknown option \"--stor\", did you mean \"--store\"? See `prefgrid run --help`"},
           {"run grid.yaml --store", "--store needs a value; see `prefgrid run --help`"},
           {"run grid.yaml --workers 0", "--workers: Value 0 not in range 1 to 1024; see"},
           {"submit grid.yaml --priority high", "--priority takes a number, not \"high\"; see"},
           {"status --store a --connect b", "--store and --connect exclude each other; see"},
           {"dataset shw x", "unknown verb \"shw\", did you mean \"show\"?"},
           {"dataset show", "SOURCE is missing; see `prefgrid dataset show --help`"},
           {"status", "say where to look: --store DIR or --connect ENDPOINT"},
           {"submit grid.yaml", "say where to submit: --connect ENDPOINT or --store DIR"}}) {
    const Finished run = sandbox.prefgrid(wrong.words);
    INFO(wrong.words, ": ", run.output);
    CHECK(run.status == 2);
    CHECK(lines_of(run.output) == 1);
    CHECK(run.output.starts_with("prefgrid: " + wrong.said));
    CHECK(!sandbox.exists("runs"));
  }
}

TEST_CASE("every verb explains itself, and the program tells its version") {
  const Sandbox sandbox;
  for (const std::string verb :
       {"run", "plan", "coordinator", "submit", "status", "results", "jobs", "explain", "logs",
        "retry", "cancel", "dataset", "dataset show", "methods", "version"}) {
    const Finished help = sandbox.prefgrid(verb + " --help");
    CAPTURE(verb);
    CHECK(help.status == 0);
    CHECK(help.output.size() > 80);
  }
  CHECK(contains(sandbox.prefgrid("--help").output, "finished, but some cells failed"));
  CHECK(sandbox.prefgrid("--version").output == "prefgrid " PREFGRID_VERSION "\n");
}

}  // namespace prefgrid
