#include <cstdio>
#include <memory>

#include "common/files.h"
#include "coordinator/cli/outputs.h"
#include "coordinator/cli/questions.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"
#include "coordinator/report/render.h"

namespace prefgrid {
namespace {

struct ResultsOptions {
  Target target;
  std::string experiment;
  std::string out;
  bool json = false;
  bool csv = false;
};

int print_results(const ResultsOptions& options) {
  auto questions = Questions::open(options.target, options.experiment);
  if (!questions) return report_error(questions.error());
  const auto outputs = ask_outputs(*questions, options.experiment);
  if (!outputs) return report_error(outputs.error());
  if (!options.out.empty()) {
    if (auto written = write_outputs(*outputs, options.out); !written) {
      return report_error(written.error());
    }
  }
  const std::string text = options.json  ? to_json(outputs->table)
                           : options.csv ? to_csv(outputs->table)
                                         : to_text(outputs->table);
  std::fputs(text.c_str(), stdout);
  return outputs->table.missing.empty() ? exit_done : exit_incomplete;
}

}  // namespace

VerbAction define_results(CLI::App& command) {
  auto options = std::make_shared<ResultsOptions>();
  command.add_option("experiment", options->experiment,
                     "Its name (default: the newest of the store); without --store and --connect "
                     "the store is runs/EXPERIMENT");
  add_target_options(command, options->target);
  command.add_option("--out", options->out, "Also write results.csv and report.html there");
  auto* json = command.add_flag("--json", options->json, "Print JSON");
  command.add_flag("--csv", options->csv, "Print CSV")->excludes(json);
  return [options] { return print_results(*options); };
}

}  // namespace prefgrid
