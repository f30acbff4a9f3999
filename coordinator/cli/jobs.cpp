#include <fmt/format.h>

#include <array>
#include <memory>
#include <vector>

#include "coordinator/cli/experiments_asked.h"
#include "coordinator/cli/time_text.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

const std::vector<std::string> states = {"waiting", "ready",  "running", "retrying",
                                         "done",    "failed", "blocked", "cancelled"};

struct JobsOptions {
  Target target;
  std::string experiment;
  std::string state;
  std::string stage;
  std::string user;
  bool json = false;
};

// "lore features_from=bow,rank=5 small args w=1 seed 0 user 3f2a"
std::string label(const Value& job) {
  std::string out;
  const auto add = [&out](const std::string& text) {
    if (!text.empty()) out += (out.empty() ? "" : " ") + text;
  };
  add(text_field(job, "method"));
  add(text_field(job, "config"));
  add(text_field(job, "backbone"));
  if (text_field(job, "policy") != text_field(job, "backbone")) add(text_field(job, "policy"));
  add(text_field(job, "decoding"));
  const double none = -1;
  if (const double w = field_or<double>(job, "weight", none); w != none) {
    add(fmt::format("w={:g}", w));
  }
  if (const auto seed = text_field(job, "seed"); !seed.empty()) add("seed " + seed);
  if (const auto user = text_field(job, "user"); !user.empty()) {
    add(text_field(job, "user_group") + " user " + user);
  }
  return out;
}

std::string line(const Value& job) {
  const std::int64_t duration = field_or<std::int64_t>(job, "duration_ms", -1);
  return fmt::format(
      "{:<13} {:<16} {:<9} {:>3}  {:>10}  {:<12}  {}\n", text_field(job, "job").substr(0, 12),
      text_field(job, "stage"), text_field(job, "state"), integer_field(job, "attempt"),
      duration < 0 ? "" : duration_text(duration), text_field(job, "worker"), label(job));
}

std::string page_text(const ValueList& jobs, bool json, bool& first) {
  std::string text;
  for (const Value& job : jobs) {
    if (json) {
      text += (first ? "" : ",\n") + value_to_json(job).dump();
    } else {
      text += line(job);
    }
    first = false;
  }
  return text;
}

int list(const JobsOptions& options, Output& out) {
  auto asked = ask_about(options.target, options.experiment);
  if (!asked) return report_error(asked.error());
  ValueMap arguments = asked->arguments;
  for (const auto& [name, value] :
       {std::pair{"state", options.state}, std::pair{"stage", options.stage},
        std::pair{"user", options.user}}) {
    if (!value.empty()) arguments.emplace(name, value);
  }
  const std::string head =
      options.json ? "[\n"
                   : fmt::format("{:<13} {:<16} {:<9} {:>3}  {:>10}  {:<12}  {}\n", "key", "stage",
                                 "state", "try", "took", "worker", "what");
  bool first = true;
  std::int64_t from = 0;
  while (from >= 0 && !out.reader_gone()) {
    arguments["from"] = from;
    const auto answer = asked->questions.ask("jobs", arguments);
    if (!answer) return report_error(answer.error());
    if (from == 0) out.print(head);  // not before the first question has gone well
    out.print(page_text(field_or<ValueList>(*answer, "jobs", {}), options.json, first));
    from = field_or<std::int64_t>(*answer, "next", -1);
  }
  if (options.json) out.print(first ? "]\n" : "\n]\n");
  return exit_done;
}

}  // namespace

VerbAction define_jobs(CLI::App& command) {
  auto options = std::make_shared<JobsOptions>();
  command.add_option("EXPERIMENT", options->experiment, experiment_help);
  add_target_options(command, options->target);
  command.add_option("--state", options->state, "Only jobs in this state")
      ->check(CLI::IsMember(states));
  command.add_option("--stage", options->stage, "Only jobs of this stage, e.g. train");
  command.add_option("--user", options->user, "Only jobs of this user");
  command.add_flag("--json", options->json, "Print JSON: a list, one job a line");
  return [options](Output& out) { return list(*options, out); };
}

}  // namespace prefgrid
