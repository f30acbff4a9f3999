// `prefgrid run`: a coordinator in this process, workers as children, and this thread as a client:
// the same path through sockets and store that a cluster takes.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "coordinator/cli/embedded_coordinator.h"
#include "coordinator/cli/local_worker.h"
#include "coordinator/cli/outputs.h"
#include "coordinator/cli/progress.h"
#include "coordinator/cli/signals.h"
#include "coordinator/cli/submission.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"
#include "coordinator/loop/client.h"
#include "coordinator/report/render.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string spec;
  std::string store;
  std::string out;
  unsigned workers = 0;
  bool plain = false;
  bool json = false;
};

// Why the watch ended before the experiment did. Written by other threads.
struct Interruption {
  std::atomic<bool> signal{false};
  std::atomic<bool> worker_failed{false};
  std::atomic<bool> disk_full{false};
  std::atomic<bool> reader_gone{false};
  bool any() const { return signal || worker_failed || reader_gone; }
};

unsigned worker_count(unsigned wanted) {
  return wanted > 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
}

Result<std::unique_ptr<LocalWorker>> start_worker(EmbeddedCoordinator& embedded,
                                                  const fs::path& program, const fs::path& store,
                                                  unsigned executors, Interruption& interruption) {
  LocalWorkerOptions options;
  options.program = program;
  options.endpoint = embedded.endpoint();
  options.executors = executors;
  options.cache = store / "cache";
  options.log = store / "worker.log";
  const std::string name = options.name;
  return LocalWorker::start(std::move(options),
                            {[&embedded, name](const std::string& reason) {
                               std::fprintf(stderr, "%s; it starts again\n", reason.c_str());
                               embedded.coordinator().worker_gone(name, reason);
                             },
                             [&interruption](const std::string& reason) {
                               std::fprintf(stderr, "prefgrid: %s\n", reason.c_str());
                               interruption.worker_failed = true;
                             }});
}

Result<void> watch_until_finished(Client& client, std::int64_t experiment, bool json, Output& out,
                                  Interruption& interruption) {
  ProgressPrinter printer(out, json);
  return client.watch({{"experiment", experiment}}, [&](const Value& answer) {
    interruption.disk_full = field_or<bool>(answer, "disk_full", false);
    printer.show(answer);
    interruption.reader_gone = out.reader_gone();
    return !interruption.any();
  });
}

int interrupted_exit(const Interruption& interruption) {
  if (interruption.worker_failed) return exit_failed;
  if (interruption.reader_gone) return exit_reader_gone;
  std::fprintf(stderr, "interrupted: run the same command again to go on\n");
  return interruption.disk_full ? exit_disk_full : exit_interrupted;
}

// How much there is to do; where jobs have failed, also what to do about it.
std::string totals_line(const RunOptions& options, const Value& progress) {
  const std::string where = options.store.empty() ? "" : " --store " + options.store;
  return totals_text(job_totals(progress), options.spec + where) + "\n";
}

int finish(Client& client, const RunOptions& options, const Submission& submission,
           const fs::path& folder, Output& out) {
  const ValueMap which{{"experiment", submission.experiment}};
  const auto answer = client.request("results", which);
  if (!answer) return report_error(answer.error());
  const auto outputs = outputs_from_value(*answer);
  if (!outputs) return report_error(outputs.error());
  if (auto written = write_outputs(*outputs, folder); !written) {
    return report_unwritten(written.error());
  }
  const bool complete = outputs->table.missing.empty();
  if (options.json) {
    out.print(to_json(outputs->table, -1));
    return complete ? exit_done : exit_incomplete;
  }
  out.print(to_text(outputs->table) + fmt::format("\nwritten: {}, {}\n",
                                                  (folder / "results.csv").string(),
                                                  (folder / "report.html").string()));
  if (complete) return exit_done;
  const auto status = client.request("status", which);
  if (!status) return report_error(status.error());
  for (const Value& progress : field_or<ValueList>(*status, "experiments", {})) {
    if (field_or<bool>(progress, "cancelled", false)) {
      out.print("cancelled by `prefgrid cancel`; run the same command again to take it up\n");
    } else {
      out.print(totals_line(options, progress));
    }
  }
  return exit_incomplete;
}

int run_prepared(const RunOptions& options, const PreparedExperiment& prepared,
                 const fs::path& worker_program, Output& out) {
  const fs::path store =
      options.store.empty() ? fs::path("runs") / prepared.spec.experiment : fs::path(options.store);
  const fs::path folder = options.out.empty() ? store : fs::path(options.out);
  if (auto usable = check_output_folder(folder); !usable) return report_refusal(usable.error());
  SignalWatch signals;  // before any thread starts
  Interruption interruption;
  signals.on_signal([&](int) { interruption.signal = true; });
  auto embedded = EmbeddedCoordinator::start(store);
  if (!embedded) return report_refusal(embedded.error());
  auto client = Client::connect((*embedded)->endpoint());
  if (!client) return report_error(client.error());
  const auto submission = submit_experiment(*client, prepared);
  if (!submission) return report_error(submission.error());

  const JobTotals left = job_totals(submission->progress);
  if (!options.json) {
    for (const std::string& note : prepared.plan.notes) out.print("note: " + note + "\n");
    out.print(totals_line(options, submission->progress));
  }
  if (left.run > 0) {
    auto worker = start_worker(**embedded, worker_program, store, worker_count(options.workers),
                               interruption);
    if (!worker) return report_error(worker.error());
    const auto watched =
        watch_until_finished(*client, submission->experiment, options.json, out, interruption);
    if (interruption.any()) return interrupted_exit(interruption);
    if (!watched) return report_error(watched.error());
  }
  return finish(*client, options, *submission, folder, out);
}

int run(const RunOptions& options, Output& out) {
  const auto worker_program = find_worker_program();
  if (!worker_program) return report_error(worker_program.error());
  const auto prepared = prepare(options.spec);
  if (!prepared) return report_error(prepared.error());
  return run_prepared(options, *prepared, *worker_program, out);
}

}  // namespace

VerbAction define_run(CLI::App& command) {
  auto options = std::make_shared<RunOptions>();
  command.add_option("SPEC", options->spec, "The experiment's YAML file")->required();
  command.add_option("--store", options->store, "The store's folder (default runs/EXPERIMENT)");
  command.add_option("--out", options->out,
                     "Folder for results.csv and report.html (default: the store's)");
  command
      .add_option("--workers", options->workers,
                  "Executor processes, of one thread each (default: one a core)")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--plain", options->plain, "Progress as plain lines, also on a terminal");
  command.add_flag("--json", options->json, "Progress and tables as JSON, one object a line");
  return [options](Output& out) { return run(*options, out); };
}

}  // namespace prefgrid
