#include "tests/end_to_end/cli/sandbox.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "common/check.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

// The programs side by side, as an installation has them, once for all tests.
const fs::path& programs() {
  static const TempDir folder;
  static const bool copied = [] {
    const fs::path build = PREFGRID_BUILD_DIR;
    fs::copy_file(build / "prefgrid", folder.path() / "prefgrid");
    fs::copy_file(build / "prefgrid-worker", folder.path() / "prefgrid-worker");
    fs::copy_file(build / "tests/prefgrid-fake-executor", folder.path() / "prefgrid-executor");
    return true;
  }();
  REQUIRE(copied);
  return folder.path();
}

std::string data() {
  std::string text;
  int number = 0;
  for (const char* user : {"ann", "bob", "cid", "dan"}) {
    const bool seen = user[0] < 'c';
    text += std::string(R"({"user":")") + user + R"(","seen":)" + (seen ? "true" : "false") + "}\n";
    for (int i = 0; i < 12; ++i) {
      const std::string n = std::to_string(++number);
      const std::string split = i < 3 ? "test" : i < 4 ? "valid" : "train";
      const std::string tail = R"(","split":")" + split + "\"}\n";
      text += R"({"id":"p)" + n + R"(","user":")" + user + R"(","prompt":"prompt )" + n +
              R"(","chosen":"good )" + n + R"(","rejected":"bad )" + n + tail;
      text += R"({"id":"c)" + n + R"(","user":")" + user + R"(","prompt":"write )" + n +
              R"(","completion":"text )" + n + tail;
    }
  }
  return text;
}

}  // namespace

std::string grid_spec() {
  return R"(experiment: grid
dataset: {kind: jsonl, path: pairs.jsonl, context_pairs: 4}
models:
  toy: {d_model: 32, layers: 2, heads: 2, kv_heads: 2, d_ff: 64, vocab_size: 512, tokens: 30000}
methods:
  - zero_shot
  - icl: {shots: 2}
  - global_bt
  - lore: {features_from: bow, rank: 2}
decoding: [greedy, args]
evaluation: {policy_items: 2, generation_items: 2, weights: [0, 1]}
)";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  PREFGRID_CHECK(at != std::string::npos, "the text has no longer: " + from);
  return text.replace(at, from.size(), to);
}

std::string key_in(const std::string& line) {
  return line.substr(0, line.find(' '));
}

Sandbox::Sandbox() {
  write("grid.yaml", grid_spec());
  write("pairs.jsonl", data());
}

fs::path Sandbox::program(const std::string& name) const {
  return programs() / name;
}

Finished Sandbox::shell(const std::string& command) const {
  const std::string text = "P=" + program("prefgrid").string() + "; " + command;
  return run_process({"/bin/bash", "-c", text}, programs(), path());
}

Finished Sandbox::prefgrid(const std::string& words) const {
  return shell("exec $P " + words);
}

Process Sandbox::coordinator(const std::string& store, const std::string& options) const {
  const std::string text =
      "exec " + program("prefgrid").string() + " coordinator --store " + store + " " + options;
  Process process = Process::piped({"/bin/bash", "-c", text}, path());
  REQUIRE(process.read_line().starts_with("listening on "));
  return process;
}

FailingJobs::FailingJobs(const std::string& kind) {
  const std::string script = kind + "=print:words of the job;fail:no luck";
  ::setenv("PREFGRID_FAKE_SCRIPTS", script.c_str(), 1);
}
FailingJobs::~FailingJobs() {
  ::unsetenv("PREFGRID_FAKE_SCRIPTS");
}

bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

long lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace prefgrid
