#include <doctest/doctest.h>
#include <poll.h>
#include <sys/syscall.h>

#include "common/random.h"
#include "tests/end_to_end/workspace.h"
#include "tests/support/seed.h"

namespace prefgrid {
namespace {

// True once the process has ended, false when the time is up first.
bool ends_within(const Process& process, int milliseconds) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process.pid(), 0));
  REQUIRE(descriptor >= 0);
  pollfd waiting{descriptor, POLLIN, 0};
  const bool ended = ::poll(&waiting, 1, milliseconds) == 1;
  ::close(descriptor);
  return ended;
}

}  // namespace

TEST_CASE("kill -9 of the coordinator at ten random moments changes no byte of the results") {
  if (xorg_missing()) return;
  const Baseline& baseline = undisturbed_smoke();
  const Workspace workspace;
  workspace.write("smoke.yaml", smoke_spec());
  RandomStream random(test_seed(), "kill moments");
  const std::vector<std::string> command = {program("prefgrid"), "run", "smoke.yaml"};
  const auto longest = static_cast<std::uint64_t>(baseline.seconds * 1'000 / 5);
  int kills = 0;
  while (kills < 10) {
    Process run(command, workspace.path() / "killed.log", workspace.path());
    REQUIRE(run.started());
    const int moment = static_cast<int>(50 + random.below(longest));
    if (ends_within(run, moment)) {
      CHECK(run.wait() == 0);
      // It got through between kills: from nothing again, until ten kills have hit something.
      std::filesystem::remove_all(workspace.path() / "runs");
      continue;
    }
    run.signal(SIGKILL);
    CHECK(run.wait() == 128 + SIGKILL);
    ++kills;
  }
  const Finished last = workspace.prefgrid({"run", "smoke.yaml"});
  INFO(last.output);
  REQUIRE(last.status == 0);
  CHECK(workspace.file("runs/smoke/results.csv") == baseline.csv);
  CHECK(workspace.file("runs/smoke/report.html") == baseline.html);
  CHECK(jobs_run_again(workspace.path() / "runs/smoke").empty());
}

TEST_CASE("Ctrl-C stops cleanly, says how to go on, and nothing is lost") {
  if (xorg_missing()) return;
  const Baseline& baseline = undisturbed_smoke();
  const Workspace workspace;
  workspace.write("smoke.yaml", smoke_spec());
  Process run({program("prefgrid"), "run", "smoke.yaml"}, workspace.path() / "run.log",
              workspace.path());
  REQUIRE(!ends_within(run, static_cast<int>(baseline.seconds * 300)));
  run.signal(SIGINT);
  CHECK(run.wait() == 130);
  CHECK(file_text(workspace.path() / "run.log").find("run the same command again") !=
        std::string::npos);
  const Finished again = workspace.prefgrid({"run", "smoke.yaml"});
  CHECK(again.status == 0);
  CHECK(workspace.file("runs/smoke/results.csv") == baseline.csv);
}

TEST_CASE("kill -9 of the worker costs its unfinished jobs' time and nothing else") {
  if (xorg_missing()) return;
  const Baseline& baseline = undisturbed_smoke();
  const Workspace workspace;
  workspace.write("smoke.yaml", smoke_spec());
  Process run({program("prefgrid"), "run", "smoke.yaml"}, workspace.path() / "run.log",
              workspace.path());
  REQUIRE(!ends_within(run, static_cast<int>(baseline.seconds * 300)));
  const Finished kill =
      run_process({"/usr/bin/pkill", "-9", "-P", std::to_string(run.pid()), "prefgrid-worker"},
                  workspace.path());
  CHECK(kill.status == 0);
  CHECK(run.wait() == 0);
  CHECK(workspace.file("runs/smoke/results.csv") == baseline.csv);
  CHECK(jobs_run_again(workspace.path() / "runs/smoke").empty());
}

}  // namespace prefgrid
