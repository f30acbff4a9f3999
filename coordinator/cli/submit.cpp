#include <cstdio>
#include <memory>
#include <optional>

#include "coordinator/cli/progress.h"
#include "coordinator/cli/submission.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

struct SubmitOptions {
  std::string spec;
  std::string connect;
  std::string store;
  std::int32_t priority = 0;
  bool wait = false;
  bool json = false;
};

int wait_for(Client& client, const Submission& submission, bool json) {
  ProgressPrinter printer(json);
  std::int64_t incomplete = 0;
  auto watched = client.watch({{"experiment", submission.experiment}}, [&](const Value& answer) {
    printer.show(answer);
    const Value progress = field_or<ValueMap>(answer, "experiment", {});
    const Value counts = field_or<ValueMap>(progress, "counts", {});
    incomplete = integer_field(counts, "total") - integer_field(counts, "done");
    return true;
  });
  if (!watched) return report_error(watched.error());
  return incomplete == 0 ? exit_done : exit_incomplete;
}

int submit(const SubmitOptions& options) {
  if (options.connect.empty() == options.store.empty()) {
    return report_error(invalid_input("say where to submit: --connect ENDPOINT or --store DIR"));
  }
  const auto prepared = prepare(options.spec);
  if (!prepared) return report_error(prepared.error());
  auto client = options.connect.empty() ? Client::connect_store(options.store)
                                        : Client::connect(options.connect);
  if (!client) return report_error(client.error());
  const auto submission = submit_experiment(*client, *prepared, options.priority);
  if (!submission) return report_error(submission.error());
  if (options.json) {
    std::printf("%s\n", value_to_json(submission->progress).dump().c_str());
  } else {
    std::printf("%s: experiment %lld, %lld jobs to run%s\n", prepared->spec.experiment.c_str(),
                static_cast<long long>(submission->experiment),
                static_cast<long long>(jobs_to_run(submission->progress)),
                submission->is_new ? "" : " (it was submitted before)");
  }
  std::fflush(stdout);
  return options.wait ? wait_for(*client, *submission, options.json) : exit_done;
}

}  // namespace

VerbAction define_submit(CLI::App& command) {
  auto options = std::make_shared<SubmitOptions>();
  command.add_option("spec", options->spec, "The experiment's YAML file")->required();
  auto* connect = command.add_option("--connect", options->connect,
                                     "The coordinator's endpoint, e.g. tcp://host:7600");
  command.add_option("--store", options->store, "Or the store that a coordinator here holds")
      ->excludes(connect);
  command.add_option("--priority", options->priority, "Higher runs first (default 0)");
  command.add_flag("--wait", options->wait, "Watch until it has finished");
  command.add_flag("--json", options->json, "Print JSON");
  return [options] { return submit(*options); };
}

}  // namespace prefgrid
