// A subcommand: one file here and one row of the table in main.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"
#include "coordinator/cli/output.h"

namespace prefgrid {

// Documented in `prefgrid --help` and docs/cli.md.
enum ExitCode : int {
  exit_done = 0,
  exit_failed = 1,         // something went wrong after the start; stderr says what
  exit_refused = 2,        // bad input: nothing was started, nothing written
  exit_incomplete = 3,     // finished, but some cells failed or are missing
  exit_disk_full = 5,      // interrupted while the disk was full, or no room for the tables
  exit_interrupted = 130,  // Ctrl-C or SIGTERM: run the same command again to go on
  exit_reader_gone = 141   // standard output was closed early (`| head`)
};

using VerbAction = std::function<int(Output& out)>;

struct Verb {
  const char* name;
  const char* summary;
  // Adds options to the command; what it returns runs once they are parsed.
  VerbAction (*define)(CLI::App& command);
};

VerbAction define_run(CLI::App& command);
VerbAction define_plan(CLI::App& command);
VerbAction define_coordinator(CLI::App& command);
VerbAction define_submit(CLI::App& command);
VerbAction define_status(CLI::App& command);
VerbAction define_results(CLI::App& command);
VerbAction define_jobs(CLI::App& command);
VerbAction define_explain(CLI::App& command);
VerbAction define_logs(CLI::App& command);
VerbAction define_retry(CLI::App& command);
VerbAction define_cancel(CLI::App& command);
VerbAction define_dataset(CLI::App& command);
VerbAction define_methods(CLI::App& command);
VerbAction define_version(CLI::App& command);

// Prints "prefgrid: message" on stderr; returns the exit code for the error.
int report_error(const Error& error);
// The same before anything has started: exit_refused, whatever the error.
int report_refusal(const Error& error);

}  // namespace prefgrid
