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

// A folder with smoke.yaml, and what an undisturbed run of it gives.
struct Smoke {
  const Baseline& baseline = undisturbed_smoke();
  Workspace workspace;

  Smoke() { workspace.write("smoke.yaml", smoke_spec()); }

  Process start() const {
    Process run({program("prefgrid"), "run", "smoke.yaml"}, workspace.path() / "run.log",
                workspace.path());
    REQUIRE(run.started());
    return run;
  }
  Process start_and_wait_for_the_middle() const {
    Process run = start();
    REQUIRE(!ends_within(run, static_cast<int>(baseline.seconds * 300)));
    return run;
  }
  void run_to_the_end() const {
    const Finished run = workspace.prefgrid({"run", "smoke.yaml"});
    INFO(run.output);
    REQUIRE(run.status == 0);
  }
  void check_nothing_differs() const {
    CHECK(workspace.file("runs/smoke/results.csv") == baseline.csv);
    CHECK(workspace.file("runs/smoke/report.html") == baseline.html);
    CHECK(jobs_run_again(workspace.path() / "runs/smoke").empty());
  }
};

}  // namespace

TEST_CASE("kill -9 of the coordinator at ten random moments changes no byte of the results") {
  if (xorg_missing()) return;
  const Smoke smoke;
  RandomStream random(test_seed(), "kill moments");
  const auto longest = static_cast<std::uint64_t>(smoke.baseline.seconds * 1'000 / 5);
  int kills = 0;
  while (kills < 10) {
    Process run = smoke.start();
    if (ends_within(run, static_cast<int>(50 + random.below(longest)))) {
      CHECK(run.wait() == 0);
      // It got through between kills: from nothing again, until ten kills have hit something.
      std::filesystem::remove_all(smoke.workspace.path() / "runs");
      continue;
    }
    run.signal(SIGKILL);
    CHECK(run.wait() == 128 + SIGKILL);
    ++kills;
  }
  smoke.run_to_the_end();
  smoke.check_nothing_differs();
}

TEST_CASE("Ctrl-C stops cleanly, says how to go on, and nothing is lost") {
  if (xorg_missing()) return;
  const Smoke smoke;
  Process run = smoke.start_and_wait_for_the_middle();
  run.signal(SIGINT);
  CHECK(run.wait() == 130);
  CHECK(smoke.workspace.file("run.log").find("run the same command again") != std::string::npos);
  smoke.run_to_the_end();
  smoke.check_nothing_differs();
}

TEST_CASE("kill -9 of the worker costs its unfinished jobs' time and nothing else") {
  if (xorg_missing()) return;
  const Smoke smoke;
  Process run = smoke.start_and_wait_for_the_middle();
  const Finished kill =
      run_process({"/usr/bin/pkill", "-9", "-P", std::to_string(run.pid()), "prefgrid-worker"},
                  smoke.workspace.path());
  CHECK(kill.status == 0);
  CHECK(run.wait() == 0);
  smoke.check_nothing_differs();
}

}  // namespace prefgrid
