#include <doctest/doctest.h>

#include <algorithm>

#include "tests/end_to_end/workspace.h"

namespace prefgrid {
namespace {

struct BadSpec {
  const char* what;
  std::string text;
  std::vector<std::string> said;  // all of these stand in the one line
};

// One line, exit code 2, and no folder made.
void check_refused(const Workspace& workspace, const Finished& run,
                   const std::vector<std::string>& said) {
  INFO(run.output);
  CHECK(run.status == 2);
  CHECK(std::count(run.output.begin(), run.output.end(), '\n') == 1);
  for (const std::string& words : said) CHECK(run.output.find(words) != std::string::npos);
  CHECK(!std::filesystem::exists(workspace.path() / "runs"));
}

std::string with(const std::string& from, const std::string& to) {
  return replaced(smoke_spec(), from, to);
}

}  // namespace

TEST_CASE("a spec that cannot be is refused with one line, before anything is written") {
  if (xorg_missing()) return;
  const std::vector<BadSpec> specs = {
      {"empty", "", {"bad.yaml"}},
      {"binary", std::string("\x7f\x45\x4c\x46\x00\x01\x02", 7), {"bad.yaml"}},
      {"unknown method", with("  - global_bt\n", "  - glbal_bt\n"), {"glbal_bt", "global_bt"}},
      {"duplicate key", smoke_spec() + "\nexperiment: twice\n", {"experiment"}},
      {"rank 0", with("rank: 2", "rank: 0"), {"rank", "bad.yaml:"}},
      {"no dataset", with("path: ", "path: /nowhere"), {"/nowhere"}},
      {"reward-free method with args alone", with("  - greedy\n", ""), {"zero_shot"}},
  };
  for (const BadSpec& bad : specs) {
    CAPTURE(bad.what);
    const Workspace workspace;
    workspace.write("bad.yaml", bad.text);
    check_refused(workspace, workspace.prefgrid({"run", "bad.yaml"}), bad.said);
  }
}

TEST_CASE("a spec that is missing, a folder or huge is refused") {
  const Workspace workspace;
  check_refused(workspace, workspace.prefgrid({"run", "nowhere.yaml"}), {"nowhere.yaml"});
  std::filesystem::create_directory(workspace.path() / "folder.yaml");
  check_refused(workspace, workspace.prefgrid({"run", "folder.yaml"}), {"folder.yaml"});
  workspace.write("huge.yaml", std::string(100 << 20, 'a'));
  check_refused(workspace, workspace.prefgrid({"run", "huge.yaml"}), {"huge.yaml"});
}

TEST_CASE("a malformed data line is refused by file and line") {
  const Workspace workspace;
  workspace.write(
      "pairs.jsonl",
      R"({"id":"1","user":"a","prompt":"p","chosen":"x","rejected":"y","split":"train"})"
      "\n{\"id\":\"2\",\n");
  workspace.write("bad.yaml",
                  "experiment: bad\ndataset: {kind: jsonl, path: pairs.jsonl}\n"
                  "models:\n  toy: {d_model: 32, layers: 2, heads: 2, kv_heads: 2}\n"
                  "methods: [global_bt]\ndecoding: [args]\nseeds: [0]\n");
  check_refused(workspace, workspace.prefgrid({"run", "bad.yaml"}), {"pairs.jsonl:2"});
}

TEST_CASE("a missing executor program is refused before anything is written") {
  if (xorg_missing()) return;
  const Workspace workspace;
  workspace.write("smoke.yaml", smoke_spec());
  std::filesystem::create_directory(workspace.path() / "bin");
  std::filesystem::copy(program("prefgrid"), workspace.path() / "bin/prefgrid");
  const Finished run =
      run_process({(workspace.path() / "bin/prefgrid").string(), "run", "smoke.yaml"},
                  workspace.path(), workspace.path());
  check_refused(workspace, run, {"prefgrid-executor"});
}

TEST_CASE("a store that a live coordinator holds is refused by its process and host") {
  if (xorg_missing()) return;
  const Workspace workspace;
  workspace.write("smoke.yaml", smoke_spec());
  const auto store = workspace.path() / "store";
  const Process holder = Process::piped(
      {program("prefgrid"), "coordinator", "--store", store.string()}, workspace.path());
  REQUIRE(holder.read_line().starts_with("listening on "));
  const Finished run = workspace.prefgrid({"run", "smoke.yaml", "--store", store.string()});
  check_refused(workspace, run, {std::to_string(holder.pid()), "host"});
}

TEST_CASE("a port in use is refused by name") {
  const Workspace workspace;
  const auto store = [&](const char* name) { return (workspace.path() / name).string(); };
  const Process holder = Process::piped(
      {program("prefgrid"), "coordinator", "--store", store("a"), "--listen", "tcp://127.0.0.1:*"},
      workspace.path());
  const std::string endpoint = tcp_endpoint(holder);
  const Finished second =
      workspace.prefgrid({"coordinator", "--store", store("b"), "--listen", endpoint});
  check_refused(workspace, second, {endpoint, "another process uses this address"});
  CHECK(!std::filesystem::exists(store("b")));
}

}  // namespace prefgrid
