#include <memory>

#include "coordinator/cli/experiments_asked.h"
#include "coordinator/cli/outputs.h"
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

int print_results(const ResultsOptions& options, Output& out) {
  if (!options.out.empty()) {
    if (auto usable = check_output_folder(options.out); !usable) {
      return report_refusal(usable.error());
    }
  }
  auto asked = ask_about(options.target, options.experiment);
  if (!asked) return report_error(asked.error());
  const auto answer = asked->questions.ask("results", asked->arguments);
  if (!answer) return report_error(answer.error());
  const auto outputs = outputs_from_value(*answer);
  if (!outputs) return report_error(outputs.error());
  if (!options.out.empty()) {
    if (auto written = write_outputs(*outputs, options.out); !written) {
      return report_unwritten(written.error());
    }
  }
  out.print(options.json  ? to_json(outputs->table)
            : options.csv ? to_csv(outputs->table)
                          : to_text(outputs->table));
  return outputs->table.missing.empty() ? exit_done : exit_incomplete;
}

}  // namespace

VerbAction define_results(CLI::App& command) {
  auto options = std::make_shared<ResultsOptions>();
  command.add_option("EXPERIMENT", options->experiment, experiment_help);
  add_target_options(command, options->target);
  command.add_option("--out", options->out, "Also write results.csv and report.html there");
  auto* json = command.add_flag("--json", options->json, "Print JSON");
  command.add_flag("--csv", options->csv, "Print CSV")->excludes(json);
  return [options](Output& out) { return print_results(*options, out); };
}

}  // namespace prefgrid
