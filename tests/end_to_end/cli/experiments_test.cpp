// How experiments, jobs, stores and files are named.
#include <doctest/doctest.h>

#include "tests/end_to_end/cli/sandbox.h"

namespace prefgrid {

TEST_CASE("an experiment is named by spec, name, start of its name, or id") {
  const Sandbox sandbox;
  REQUIRE(sandbox.prefgrid("run grid.yaml --store s").status == 0);
  for (const std::string name : {"grid.yaml", "grid", "gr", "1"}) {
    const Finished status = sandbox.prefgrid("status " + name + " --store s");
    CAPTURE(name);
    CHECK(status.status == 0);
    CHECK(contains(status.output, "grid (id 1, finished)\n"));
    CHECK(sandbox.prefgrid("results " + name + " --store s").status == 0);
    CHECK(sandbox.prefgrid("jobs " + name + " --store s").status == 0);
  }
  const Finished unknown = sandbox.prefgrid("status other --store s");
  CHECK(unknown.status == 2);
  CHECK(unknown.output == "prefgrid: no experiment is called \"other\"; there are: grid (id 1)\n");
}

TEST_CASE("two experiments of one name are told apart by their ids") {
  const Sandbox sandbox;
  REQUIRE(sandbox.prefgrid("run grid.yaml --store s").status == 0);
  sandbox.write("grid.yaml", replaced(grid_spec(), "rank: 2", "rank: 3"));
  REQUIRE(sandbox.prefgrid("run grid.yaml --store s").status == 0);
  const Finished status = sandbox.prefgrid("status --store s");
  CHECK(contains(status.output, "grid (id 1, finished)"));
  CHECK(contains(status.output, "grid (id 2, finished)"));
  CHECK(contains(sandbox.prefgrid("results 1 --store s").output, "rank=2"));
  CHECK(contains(sandbox.prefgrid("results 2 --store s").output, "rank=3"));
  const Finished named = sandbox.prefgrid("results grid --store s");
  CHECK(contains(named.output, "rank=3"));
  CHECK(contains(named.output, "note: of 2 experiments called grid this is the newest, id 2\n"));
}

TEST_CASE("results of one spec show another's: a spec file is the experiment that it made") {
  const Sandbox sandbox;
  REQUIRE(sandbox.prefgrid("run grid.yaml --store s").status == 0);
  sandbox.write("more.yaml", replaced(grid_spec(), "rank: 2", "rank: 3"));
  REQUIRE(sandbox.prefgrid("run more.yaml --store s").status == 0);
  sandbox.write("respelt.yaml", "# the same\n" + grid_spec());
  for (const std::string name : {"grid.yaml", "respelt.yaml"}) {
    const Finished results = sandbox.prefgrid("results " + name + " --store s");
    CHECK(contains(results.output, "rank=2"));
    CHECK(!contains(results.output, "rank=3"));
    CHECK(!contains(results.output, "note:"));
  }
  CHECK(contains(sandbox.prefgrid("results more.yaml --store s").output, "rank=3"));
  sandbox.write("never.yaml", replaced(grid_spec(), "rank: 2", "rank: 4"));
  const Finished never = sandbox.prefgrid("results never.yaml --store s");
  CHECK(contains(never.output,
                 "never.yaml says something else now than when it was run; this is "
                 "the newest experiment called grid, id 2\n"));
}

TEST_CASE("rows that a spec allows to be left out are said by plan and run") {
  const Sandbox sandbox;
  const std::string data = sandbox.file("pairs.jsonl");
  sandbox.write("pairs.jsonl", data + "{\"cut\n");
  CHECK(sandbox.prefgrid("plan grid.yaml").status == 2);
  sandbox.write("skip.yaml",
                replaced(grid_spec(), "path: pairs.jsonl", "path: pairs.jsonl, on_bad_row: skip"));
  const std::string note = "note: the dataset leaves out 1 row (1 ";
  CHECK(contains(sandbox.prefgrid("plan skip.yaml").output, note));
  CHECK(contains(sandbox.prefgrid("run skip.yaml").output, note));
}

TEST_CASE("an output folder that only looks writable is refused before the run") {
  const Sandbox sandbox;
  const Finished run = sandbox.prefgrid("run grid.yaml --store s --out /proc/tables");
  CHECK(run.status == 2);
  CHECK(contains(run.output, "cannot write to the folder /proc/tables: "));
  CHECK(!sandbox.exists("s"));
}

TEST_CASE("jobs lists every job once with a key that explain takes") {
  const Sandbox sandbox;
  REQUIRE(sandbox.prefgrid("run grid.yaml").status == 0);
  const Finished all = sandbox.prefgrid("jobs grid --state done");
  CHECK(lines_of(all.output) == grid_jobs + 1);
  const Finished some = sandbox.shell("$P jobs grid --stage rm_accuracy --user cid | tail -n +2");
  CHECK(lines_of(some.output) == 2);
  CHECK(contains(some.output, "unseen user cid"));
  const std::string key = key_in(some.output);
  CHECK(sandbox.prefgrid("explain " + key.substr(0, 6) + " --store runs/grid").status == 0);
}

TEST_CASE("a relative dataset path starts at the spec's folder, wherever one stands") {
  const Sandbox sandbox;
  sandbox.write("specs/grid.yaml",
                replaced(grid_spec(), "path: pairs.jsonl", "path: ../pairs.jsonl"));
  CHECK(sandbox.shell("$P plan specs/grid.yaml").status == 0);
  CHECK(sandbox.shell("cd specs && $P plan grid.yaml").status == 0);
  CHECK(sandbox.shell("cd / && $P dataset show $OLDPWD/specs/grid.yaml").status == 0);
  const Finished wrong = sandbox.shell("cp grid.yaml specs/wrong.yaml; $P plan specs/wrong.yaml");
  CHECK(wrong.status == 2);
  CHECK(contains(wrong.output, (sandbox.path() / "specs/pairs.jsonl").string()));
  CHECK(contains(wrong.output, "(a relative path starts at the spec's folder)"));
}

TEST_CASE("a mistyped store does not pass in silence: plan says that it is not there") {
  const Sandbox sandbox;
  REQUIRE(sandbox.prefgrid("run grid.yaml --store s").status == 0);
  const Finished plan = sandbox.prefgrid("plan grid.yaml --store t");
  CHECK(plan.status == 0);
  CHECK(contains(plan.output, "note: there is no store at t yet: everything counts as new\n"));
  const Finished results = sandbox.prefgrid("results --store t");
  CHECK(results.status == 2);
  CHECK(lines_of(results.output) == 1);
}

}  // namespace prefgrid
