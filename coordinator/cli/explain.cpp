#include <cstdio>
#include <memory>

#include "common/text.h"
#include "coordinator/cli/questions.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

struct ExplainOptions {
  Target target;
  std::string job;
  std::string artifact;
  bool json = false;
};

// A map as indented lines; the order is the map's own.
void print_fields(const Value& value, const std::string& indent) {
  for (const auto& [name, item] : value.map()) {
    if (const auto* map = std::get_if<ValueMap>(&item)) {
      std::printf("%s%s:\n", indent.c_str(), name.c_str());
      print_fields(*map, indent + "  ");
    } else {
      const auto* text = std::get_if<std::string>(&item);
      const std::string shown = text ? *text : value_to_json(item).dump();
      std::printf("%s%s: %s\n", indent.c_str(), name.c_str(), shown.c_str());
    }
  }
}

void print_history(const Value& answer) {
  const auto events = field_or<ValueList>(answer, "events", {});
  if (!events.empty()) std::printf("history:\n");
  for (const Value& event : events) {
    std::printf("  %s attempt %lld %s %s\n", text_field(event, "what").c_str(),
                static_cast<long long>(integer_field(event, "attempt")),
                text_field(event, "worker").c_str(), text_field(event, "detail").c_str());
  }
}

// One of the files that the job made, as it is.
int print_artifact(Questions& questions, const Value& answer, const std::string& name) {
  const Value result = field_or<ValueMap>(answer, "result", {});
  std::string known;
  for (const Value& artifact : field_or<ValueList>(result, "artifacts", {})) {
    known += (known.empty() ? "" : ", ") + text_field(artifact, "name");
    if (text_field(artifact, "name") != name) continue;
    const auto digest = ArtifactDigest::from_hex(text_field(artifact, "digest"));
    if (!digest) return report_error({ErrorCode::internal, "the answer names no digest"});
    const auto content = questions.artifact(*digest);
    if (!content) return report_error(content.error());
    std::fwrite(content->data(), 1, content->size(), stdout);
    return exit_done;
  }
  return report_error({ErrorCode::not_found, "the job has no artefact " + quoted(name) +
                                                 "; it has: " + (known.empty() ? "none" : known)});
}

int explain(const ExplainOptions& options) {
  auto questions = Questions::open(options.target);
  if (!questions) return report_error(questions.error());
  auto answer = questions->ask("explain", {{"job", options.job}});
  if (!answer) return report_error(answer.error());
  if (!options.artifact.empty()) return print_artifact(*questions, *answer, options.artifact);
  if (options.json) {
    std::printf("%s\n", value_to_json(*answer).dump(2).c_str());
    return exit_done;
  }
  Value fields = *answer;
  if (auto* map = std::get_if<ValueMap>(&fields)) {
    map->erase("events");
    print_fields(fields, "");
  }
  print_history(*answer);
  return exit_done;
}

}  // namespace

VerbAction define_explain(CLI::App& command) {
  auto options = std::make_shared<ExplainOptions>();
  command.add_option("job", options->job, "The first digits (at least 4) of the job's key")
      ->required();
  add_target_options(command, options->target);
  command.add_option("--artifact", options->artifact,
                     "Print one of the files that the job made, e.g. generations.jsonl");
  command.add_flag("--json", options->json, "Print JSON");
  return [options] { return explain(*options); };
}

}  // namespace prefgrid
