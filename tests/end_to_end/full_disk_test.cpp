// A disk that fills up under `prefgrid run`, whose workers keep their files in the store's folder:
// a tmpfs of its own, so only where this process may mount one.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/files.h"
#include "coordinator/store/store.h"
#include "tests/end_to_end/workspace.h"
#include "tests/support/small_disk.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

// True once the process has ended, false when the time is up first.
bool ends_within(const Process& process, int milliseconds) {
  const Descriptor watched(static_cast<int>(::syscall(SYS_pidfd_open, process.pid(), 0)));
  REQUIRE(bool(watched));
  pollfd waiting{watched.get(), POLLIN, 0};
  return ::poll(&waiting, 1, milliseconds) == 1;
}

// Asks the run until it says that the disk is full; false: it ended before it needed any room.
bool notices(const Workspace& workspace, const fs::path& store) {
  for (;;) {
    const Finished status = workspace.prefgrid({"status", "--store", store.string(), "--json"});
    if (status.output.find("\"disk_full\": true") != std::string::npos) return true;
    if (status.output.find("\"waits_for\": \"the disk") != std::string::npos) return true;
    if (status.output.find("\"live\": true") == std::string::npos) return false;
  }
}

// Not one attempt was charged to a job.
bool nobody_was_charged(const fs::path& folder) {
  const auto store = Store::open_read_only(folder);
  REQUIRE(store.ok());
  bool charged = false;
  const auto scanned = (*store)->each_event(0, [&](const StoredEvent& stored) {
    charged |= std::holds_alternative<history::Failed>(stored.event.what);
    return Result<bool>(true);
  });
  REQUIRE(scanned.ok());
  return !charged;
}

std::vector<std::string> run_command(const fs::path& store, const Workspace& workspace) {
  return {program("prefgrid"),        "run", "smoke.yaml", "--store", store, "--out",
          workspace.path() / "tables"};
}

}  // namespace

TEST_CASE("a disk that fills up under a run costs nobody an attempt, and no byte of the results") {
  if (xorg_missing()) return;
  const Baseline& baseline = undisturbed_smoke();
  int hits = 0;
  for (int tenth = 1; tenth <= 8; ++tenth) {
    const SmallDisk disk(128);
    if (!disk.mounted()) return;
    const Workspace workspace;
    workspace.write("smoke.yaml", smoke_spec());
    const fs::path store = disk.path() / "store";
    Process run(run_command(store, workspace), workspace.path() / "run.log", workspace.path());
    REQUIRE(run.started());
    if (ends_within(run, static_cast<int>(baseline.seconds * 100 * tenth))) continue;
    disk.fill();
    const bool hit = notices(workspace, store);
    disk.make_room();
    const int status = run.wait();
    INFO(file_text(workspace.path() / "run.log"));
    if (!hit && status == 2) continue;  // full before the store was there: refused
    if (hit) ++hits;
    CHECK(status == 0);
    CHECK((workspace.file("tables/results.csv") == baseline.csv));
    CHECK(nobody_was_charged(store));
    CHECK(jobs_run_again(store).empty());
  }
  CHECK(hits >= 3);
}

TEST_CASE("a run that is interrupted while its disk is full exits 5 and goes on later") {
  if (xorg_missing()) return;
  const Baseline& baseline = undisturbed_smoke();
  const SmallDisk disk(128);
  if (!disk.mounted()) return;
  const Workspace workspace;
  workspace.write("smoke.yaml", smoke_spec());
  const fs::path store = disk.path() / "store";
  Process run(run_command(store, workspace), workspace.path() / "run.log", workspace.path());
  REQUIRE(!ends_within(run, static_cast<int>(baseline.seconds * 300)));
  disk.fill();
  const auto told = [&] {  // what the run itself has heard
    return file_text(workspace.path() / "run.log").find("the disk is full") != std::string::npos;
  };
  do {
    REQUIRE(notices(workspace, store));
  } while (!told());
  run.signal(SIGINT);
  CHECK(run.wait() == 5);
  disk.make_room();
  const Finished again =
      run_process(run_command(store, workspace), workspace.path(), workspace.path());
  INFO(again.output);
  CHECK(again.status == 0);
  CHECK((workspace.file("tables/results.csv") == baseline.csv));
  CHECK(nobody_was_charged(store));
}

TEST_CASE("tables that find no room end the run with 5 and one line; then it has only them to do") {
  if (xorg_missing()) return;
  const SmallDisk disk(128);
  if (!disk.mounted()) return;
  const Workspace workspace;
  workspace.write("smoke.yaml", smoke_spec());
  disk.fill();
  const std::vector<std::string> arguments{"run", "smoke.yaml", "--out",
                                           (disk.path() / "tables").string()};
  const Finished full = workspace.prefgrid(arguments);
  INFO(full.output);
  CHECK(full.status == 5);
  CHECK(full.output.find("results.csv") != std::string::npos);
  CHECK(full.output.find("No space left on device; make room") != std::string::npos);
  CHECK(!fs::exists(disk.path() / "tables" / "results.csv"));
  disk.make_room();
  CHECK(workspace.prefgrid(arguments).status == 0);
  CHECK((file_text(disk.path() / "tables" / "results.csv") == undisturbed_smoke().csv));
  CHECK(jobs_run_again(workspace.path() / "runs/smoke").empty());
}

}  // namespace prefgrid
