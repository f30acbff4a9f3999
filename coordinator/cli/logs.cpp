#include <memory>

#include "coordinator/cli/questions.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

struct LogOptions {
  Target target;
  std::string job;
  bool json = false;
};

int print_log(const LogOptions& options, Output& out) {
  auto questions = Questions::open(options.target);
  if (!questions) return report_error(questions.error());
  const auto answer = questions->ask("logs", {{"job", options.job}});
  if (!answer) return report_error(answer.error());
  if (options.json) {
    out.print(value_to_json(*answer).dump(2) + "\n");
    return exit_done;
  }
  std::string log = text_field(*answer, "log");
  if (!log.empty() && log.back() != '\n') log += '\n';
  out.print(log);
  return exit_done;
}

}  // namespace

VerbAction define_logs(CLI::App& command) {
  auto options = std::make_shared<LogOptions>();
  command.add_option("KEY", options->job, key_help)->required();
  add_target_options(command, options->target);
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("The last 64 KiB of what the job's last attempt wrote.");
  return [options](Output& out) { return print_log(*options, out); };
}

}  // namespace prefgrid
