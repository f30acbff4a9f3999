// prefgrid: the front door. Each verb is one file beside this one and one row here.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common/log.h"
#include "coordinator/cli/usage.h"
#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = {
      {"run", "Run an experiment here: coordinator and workers in one command", define_run},
      {"plan", "Say what a run would do: reuse, run, run again and why", define_plan},
      {"coordinator", "Serve a store to workers and clients", define_coordinator},
      {"submit", "Hand an experiment to a coordinator", define_submit},
      {"status", "Show experiments, stages and workers", define_status},
      {"results", "Print an experiment's tables", define_results},
      {"jobs", "List jobs with their keys: done, running, failed", define_jobs},
      {"explain", "Show a job: its fields, its state, why it waits or failed", define_explain},
      {"logs", "Print what a job wrote", define_logs},
      {"retry", "Let jobs that failed for good run again", define_retry},
      {"cancel", "Stop an experiment; its results stay", define_cancel},
      {"dataset", "Look at a dataset as the planner reads it", define_dataset},
      {"methods", "List methods, decoders and their fields", define_methods},
      {"version", "Print the versions of prefgrid and its job kinds", define_version},
  };
  return table;
}

constexpr const char* footer =
    "Exit codes:\n"
    "    0  done\n"
    "    1  something went wrong after the start\n"
    "    2  refused: nothing was started, nothing written\n"
    "    3  finished, but some cells failed or are missing\n"
    "    5  interrupted while the disk was full, or no room for the tables\n"
    "  130  interrupted: run the same command again to go on\n"
    "  141  standard output was closed early\n";

int run_main(int argc, char** argv) {
  Output out;
  CLI::App app{"Runs grids of personalised-alignment experiments: method x model x user.",
               "prefgrid"};
  app.footer(footer);
  app.require_subcommand(1);
  app.set_version_flag("--version", "prefgrid " PREFGRID_VERSION);
  std::vector<std::pair<CLI::App*, VerbAction>> commands;
  for (const Verb& verb : verbs()) {
    CLI::App* command = app.add_subcommand(verb.name, verb.summary);
    commands.emplace_back(command, verb.define(*command));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    out.print(app.help());
    return out.exit_code(exit_done);
  } catch (const CLI::CallForVersion& version) {
    out.print(std::string(version.what()) + "\n");
    return out.exit_code(exit_done);
  } catch (const CLI::ParseError& error) {
    return report_refusal(invalid_input(usage_problem(app, error, {argv + 1, argv + argc})));
  }
  if (auto log = set_up_log("prefgrid", false); !log) return report_error(log.error());
  for (const auto& [command, action] : commands) {
    if (command->parsed()) return out.exit_code(action(out));
  }
  return exit_refused;
}

}  // namespace

int report_refusal(const Error& error) {
  std::fprintf(stderr, "prefgrid: %s\n", error.message.c_str());
  return exit_refused;
}

int report_error(const Error& error) {
  report_refusal(error);
  switch (error.code) {
    case ErrorCode::invalid_input:
    case ErrorCode::not_found:
    case ErrorCode::conflict:
    case ErrorCode::out_of_space:
      return exit_refused;
    default:
      return exit_failed;
  }
}

}  // namespace prefgrid

int main(int argc, char** argv) {
  return prefgrid::run_main(argc, argv);
}
