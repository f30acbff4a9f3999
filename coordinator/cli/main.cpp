// prefgrid: the front door. Each verb is one file beside this one and one row here.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common/log.h"
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
      {"explain", "Show a job: its fields, its state, why it waits or failed", define_explain},
      {"dataset", "Look at a dataset as the planner reads it", define_dataset},
      {"methods", "List methods, decoders and their fields", define_methods},
      {"version", "Print the versions of prefgrid and its job kinds", define_version},
  };
  return table;
}

constexpr const char* footer =
    "Exit codes: 0 done; 1 some cells failed or are missing, or it failed midway; 2 bad input,\n"
    "nothing written; 5 interrupted while the disk was full; 130 interrupted, run it again to go "
    "on.";

int run_main(int argc, char** argv) {
  CLI::App app{"Runs grids of personalised-alignment experiments: method x model x user."};
  app.footer(footer);
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, VerbAction>> commands;
  for (const Verb& verb : verbs()) {
    CLI::App* command = app.add_subcommand(verb.name, verb.summary);
    commands.emplace_back(command, verb.define(*command));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_refused;
  }
  if (auto log = set_up_log("prefgrid", false); !log) return report_error(log.error());
  for (const auto& [command, action] : commands) {
    if (command->parsed()) return action();
  }
  return exit_refused;
}

}  // namespace

int report_error(const Error& error) {
  std::fprintf(stderr, "prefgrid: %s\n", error.message.c_str());
  switch (error.code) {
    case ErrorCode::invalid_input:
    case ErrorCode::not_found:
    case ErrorCode::conflict:
    case ErrorCode::out_of_space:
      return exit_refused;
    default:
      return exit_incomplete;
  }
}

}  // namespace prefgrid

int main(int argc, char** argv) {
  return prefgrid::run_main(argc, argv);
}
