#include "tests/end_to_end/workspace.h"

#include <doctest/doctest.h>

#include <chrono>
#include <set>

#include "common/check.h"
#include "coordinator/store/store.h"

namespace prefgrid {

namespace fs = std::filesystem;

bool xorg_missing() {
  const fs::path data = fs::path(PREFGRID_SOURCE_DIR) / "data/xorg";
  if (fs::exists(data)) return false;
  std::printf("skipped: no %s; ops/fetch-xorg.sh makes it\n", data.c_str());
  return true;
}

std::string program(const std::string& name) {
  return (fs::path(PREFGRID_BUILD_DIR) / name).string();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  PREFGRID_CHECK(at != std::string::npos, "the spec has no longer: " + from);
  return text.replace(at, from.size(), to);
}

std::string shipped_spec(const std::string& file) {
  const fs::path source = PREFGRID_SOURCE_DIR;
  return replaced(file_text(source / "experiments/specs" / file), "path: ../../data/xorg",
                  "path: " + (source / "data/xorg").string());
}

std::string smoke_spec() {
  return shipped_spec("smoke.yaml");
}

Finished Workspace::prefgrid(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), program("prefgrid"));
  return run_process(arguments, path(), path());
}

std::string tcp_endpoint(const Process& coordinator) {
  for (;;) {
    const std::string line = coordinator.read_line();
    REQUIRE_MESSAGE(!line.empty(), "the coordinator ended without listening");
    if (const std::size_t at = line.find("tcp://"); at != std::string::npos) return line.substr(at);
  }
}

const Baseline& undisturbed_smoke() {
  static const Baseline baseline = [] {
    const Workspace workspace;
    workspace.write("smoke.yaml", smoke_spec());
    const auto start = std::chrono::steady_clock::now();
    const Finished run = workspace.prefgrid({"run", "smoke.yaml"});
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    INFO(run.output);
    REQUIRE(run.status == 0);
    std::printf("smoke: %.1f s\n", taken.count());
    return Baseline{run.output, workspace.file("runs/smoke/results.csv"),
                    workspace.file("runs/smoke/report.html"), taken.count()};
  }();
  return baseline;
}

std::vector<std::string> jobs_run_again(const fs::path& folder) {
  auto store = Store::open_read_only(folder);
  REQUIRE_MESSAGE(store.ok(), (store.ok() ? "" : store.error().message));
  std::set<JobKey> done;
  std::vector<std::string> again;
  const auto scanned = (*store)->each_event(0, [&](const StoredEvent& stored) {
    const EventFact& event = stored.event;
    if (!event.job) return Result<bool>(true);
    if (std::holds_alternative<history::Done>(event.what)) done.insert(*event.job);
    if (std::holds_alternative<history::Leased>(event.what) && done.contains(*event.job)) {
      again.push_back(event.job->hex());
    }
    return Result<bool>(true);
  });
  REQUIRE(scanned.ok());
  REQUIRE(!done.empty());
  return again;
}

}  // namespace prefgrid
