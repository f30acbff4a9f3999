// Bad input: one line, exit code 2, nothing written.
#include <doctest/doctest.h>

#include <algorithm>

#include "coordinator/store/database.h"
#include "coordinator/store/keys.h"
#include "coordinator/store/records.h"
#include "tests/end_to_end/cli/sandbox.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

void check_refused(const Sandbox& sandbox, const Finished& run,
                   const std::vector<std::string>& said) {
  INFO(run.output);
  CHECK(run.status == 2);
  CHECK(lines_of(run.output) == 1);
  for (const std::string& words : said) CHECK(contains(run.output, words));
  CHECK(!sandbox.exists("runs"));
}

std::string with(const std::string& from, const std::string& to) {
  return replaced(grid_spec(), from, to);
}

// A file, a file's inside, and a name that is too long.
const std::vector<std::string> no_folders = {"taken", "taken/sub", std::string(300, 'a')};

// Names and contents of all files below.
std::string snapshot(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    std::string content = entry.is_regular_file() ? file_text(entry.path()) : "";
    files.push_back(entry.path().string() + "\n" + content);
  }
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::string& file : files) all += file;
  return all;
}

}  // namespace

TEST_CASE("a spec that cannot be is refused with one line, before anything is written") {
  struct BadSpec {
    std::string text;
    std::vector<std::string> said;
  };
  const std::vector<BadSpec> specs = {
      {"", {"bad.yaml:1:1: the file is empty"}},
      {std::string("\x7f\x45\x4c\x46\x00\x01\x02", 7), {"bad.yaml:1:1", "text file"}},
      {with("  - global_bt\n", "  - glbal_bt\n"), {"bad.yaml:8:5", "glbal_bt", "\"global_bt\"?"}},
      {grid_spec() + "\nexperiment: twice\n", {"bad.yaml:", "\"experiment\" is there twice"}},
      {with("rank: 2", "rank: 0"), {"bad.yaml:9:38: rank is \"0\"", "from 1 to 256"}},
      {with("[greedy, args]", "[args]"), {"bad.yaml:6:5: zero_shot", "greedy"}},
      {with("path: pairs.jsonl", "path: /nowhere/x.jsonl"), {"bad.yaml:2:10", "/nowhere/x.jsonl"}},
      {with("path: pairs.jsonl", "path: \"\""), {"bad.yaml:2:30: path is an empty text"}},
      {with("kind: jsonl, path: pairs.jsonl, context_pairs: 4", "kind: xorg, max_items: 10"),
       {"max_items is \"10\"; it takes an integer from 50 to 100000"}},
      {with("kind: jsonl, path: pairs.jsonl, context_pairs: 4",
            "kind: xorg, min_items: 70, max_items: 60"),
       {"dataset: max_items is 60, below min_items, 70"}},
      {with("context_pairs: 4", "context_pairs: 4, on_bad_row: ignore"), {"on_bad_row"}},
  };
  for (const BadSpec& bad : specs) {
    const Sandbox sandbox;
    sandbox.write("bad.yaml", bad.text);
    const Finished run = sandbox.prefgrid("run bad.yaml");
    check_refused(sandbox, run, bad.said);
    CHECK(!contains(run.output, "dataset: dataset:"));
  }
}

TEST_CASE("a spec that is missing, a folder or huge is refused") {
  const Sandbox sandbox;
  check_refused(sandbox, sandbox.prefgrid("run nowhere.yaml"), {"nowhere.yaml"});
  fs::create_directory(sandbox.path() / "folder.yaml");
  check_refused(sandbox, sandbox.prefgrid("run folder.yaml"), {"folder.yaml is a folder"});
  sandbox.write("huge.yaml", std::string(100 << 20, 'a'));
  check_refused(sandbox, sandbox.prefgrid("run huge.yaml"), {"huge.yaml is larger than"});
}

TEST_CASE("a bad data line is refused by file, line and byte, in words for people") {
  struct BadLine {
    std::string line;
    std::string said;
  };
  for (const BadLine& bad : std::vector<BadLine>{
           {"{\"id\":\"2\",", "bad.jsonl:2: not JSON at byte 11: the line ends too early"},
           {"{\"id\":\"2\", x}", "bad.jsonl:2: not JSON at byte 12, near \"x}\""},
           {"{\"id\":\"\xff\"}", "bad.jsonl:2: not JSON at byte 8: not UTF-8"},
           {"{\"id\":1e999}", "bad.jsonl:2: not JSON at byte 11: a number too large"},
           {"[1]", "bad.jsonl:2: not a JSON object"}}) {
    const Sandbox sandbox;
    sandbox.write("bad.jsonl", R"({"user":"ann","seen":true})"
                               "\n" +
                                   bad.line + "\n");
    sandbox.write("bad.yaml", with("pairs.jsonl", "bad.jsonl"));
    const Finished run = sandbox.prefgrid("run bad.yaml");
    check_refused(sandbox, run, {bad.said});
    CHECK(!contains(run.output, "exception"));
  }
}

TEST_CASE("a user with too few items is refused by name") {
  const Sandbox sandbox;
  sandbox.write("few.jsonl", sandbox.file("pairs.jsonl") + "{\"user\":\"eve\",\"seen\":false}\n");
  sandbox.write("few.yaml", with("pairs.jsonl", "few.jsonl"));
  check_refused(sandbox, sandbox.prefgrid("run few.yaml"),
                {"user \"eve\" has 0 test pairs", "skip_small_users: true"});
}

TEST_CASE("a missing executor program is refused before anything is written") {
  const Sandbox sandbox;
  fs::create_directory(sandbox.path() / "bin");
  fs::copy(sandbox.program("prefgrid"), sandbox.path() / "bin/prefgrid");
  check_refused(sandbox, sandbox.shell("bin/prefgrid run grid.yaml"), {"no prefgrid-executor"});
}

TEST_CASE("a place for results that is none is refused before the run") {
  const Sandbox sandbox;
  sandbox.write("taken", "a file");
  for (const std::string& out : no_folders) {
    check_refused(sandbox, sandbox.prefgrid("run grid.yaml --out " + out),
                  {"cannot write to the folder " + out});
    CHECK(sandbox.prefgrid("results grid --out " + out).status == 2);
  }
  CHECK(sandbox.file("taken") == "a file");
}

TEST_CASE("a store that cannot be made is refused") {
  const Sandbox sandbox;
  sandbox.write("taken", "a file");
  for (const std::string& store : no_folders) {
    check_refused(sandbox, sandbox.prefgrid("run grid.yaml --store " + store), {store});
    check_refused(sandbox, sandbox.prefgrid("coordinator --store " + store), {store});
  }
  // A disk without room: /proc has none.
  check_refused(sandbox, sandbox.prefgrid("run grid.yaml --store /proc/store"), {"/proc/store"});
}

TEST_CASE("a store of a newer version is refused by every verb and stays as it is") {
  const Sandbox sandbox;
  REQUIRE(sandbox.prefgrid("run grid.yaml --store s").status == 0);
  {
    auto database = Database::open(sandbox.path() / "s/db", Database::Mode::read_write);
    REQUIRE(database.ok());
    const MetaRecord newer{store_format_version + 1, "9.9", WallMs{1}};
    REQUIRE(database->write({{Family::meta, std::string(meta_key), encode_record(newer)}}).ok());
  }
  const std::string before = snapshot(sandbox.path() / "s");
  for (const std::string words :
       {"run grid.yaml", "plan grid.yaml", "coordinator", "status", "results", "jobs", "retry",
        "cancel", "explain 0123ab", "logs 0123ab"}) {
    const Finished run = sandbox.prefgrid(words + " --store s");
    CAPTURE(words);
    check_refused(sandbox, run, {"format 2, made by prefgrid 9.9"});
    CHECK(snapshot(sandbox.path() / "s") == before);
  }
}

TEST_CASE("a store that a live coordinator holds is refused by its process and host") {
  const Sandbox sandbox;
  const Process holder = sandbox.coordinator("s");
  for (const std::string words : {"run grid.yaml", "coordinator"}) {
    check_refused(sandbox, sandbox.prefgrid(words + " --store s"),
                  {"process " + std::to_string(holder.pid()) + " on host "});
  }
}

TEST_CASE("a port in use is refused by name") {
  const Sandbox sandbox;
  const Process holder = sandbox.coordinator("a", "--listen 'tcp://127.0.0.1:*'");
  const std::string line = holder.read_line();
  const std::string endpoint = line.substr(line.find("tcp://"));
  const Finished second = sandbox.prefgrid("coordinator --store b --listen " + endpoint);
  check_refused(sandbox, second, {endpoint, "another process uses this address"});
  CHECK(!sandbox.exists("b"));
}

}  // namespace prefgrid
