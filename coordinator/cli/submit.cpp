#include <fmt/format.h>

#include <memory>

#include "coordinator/cli/progress.h"
#include "coordinator/cli/questions.h"
#include "coordinator/cli/submission.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

struct SubmitOptions {
  Target target;
  std::string spec;
  std::int32_t priority = 0;
  bool wait = false;
  bool json = false;
};

int wait_for(Client& client, const Submission& submission, bool json, Output& out) {
  ProgressPrinter printer(out, json);
  std::int64_t incomplete = 0;
  auto watched = client.watch({{"experiment", submission.experiment}}, [&](const Value& answer) {
    printer.show(answer);
    const Value progress = field_or<ValueMap>(answer, "experiment", {});
    const Value counts = field_or<ValueMap>(progress, "counts", {});
    incomplete = integer_field(counts, "total") - integer_field(counts, "done");
    return !out.reader_gone();
  });
  if (!watched) return report_error(watched.error());
  return incomplete == 0 ? exit_done : exit_incomplete;
}

int submit(const SubmitOptions& options, Output& out) {
  if (options.target.connect.empty() && options.target.store.empty()) {
    return report_error(invalid_input("say where to submit: --connect ENDPOINT or --store DIR"));
  }
  const auto prepared = prepare(options.spec);
  if (!prepared) return report_error(prepared.error());
  auto client = options.target.connect.empty() ? Client::connect_store(options.target.store)
                                               : connect_to(options.target.connect);
  if (!client) return report_error(client.error());
  const auto submission = submit_experiment(*client, *prepared, options.priority);
  if (!submission) return report_error(submission.error());
  if (options.json) {
    out.print(value_to_json(submission->progress).dump() + "\n");
  } else {
    out.print(fmt::format("{}: experiment {}{}, {}\n", prepared->spec.experiment,
                          submission->experiment, submission->is_new ? "" : " (submitted before)",
                          totals_text(job_totals(submission->progress), options.spec)));
  }
  return options.wait ? wait_for(*client, *submission, options.json, out) : exit_done;
}

}  // namespace

VerbAction define_submit(CLI::App& command) {
  auto options = std::make_shared<SubmitOptions>();
  command.add_option("SPEC", options->spec, "The experiment's YAML file")->required();
  add_target_options(command, options->target);
  command.add_option("--priority", options->priority, "Higher runs first (default 0)");
  command.add_flag("--wait", options->wait, "Watch until it has finished");
  command.add_flag("--json", options->json, "Print JSON");
  return [options](Output& out) { return submit(*options, out); };
}

}  // namespace prefgrid
