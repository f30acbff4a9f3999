#include "experiments/datasets/dataset.h"

#include <fmt/format.h>

#include <memory>

#include "coordinator/cli/prepare.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"
#include "experiments/datasets/leak_detector.h"
#include "experiments/datasets/rows.h"

namespace prefgrid {
namespace {

struct ShowOptions {
  std::string source;
  bool json = false;
};

// A spec's dataset section, or a canonical file itself.
Result<LoadedDataset> load(const std::string& source) {
  if (source.ends_with(".jsonl") || source.ends_with(".jsonl.gz")) {
    return load_dataset({{"kind", "jsonl"}, {"path", source}});
  }
  PREFGRID_ASSIGN(const ExperimentSpec spec, read_spec(source));
  return read_dataset_of(spec, source);
}

int show(const ShowOptions& options, Output& out) {
  const auto loaded = load(options.source);
  if (!loaded) return report_error(loaded.error());
  const std::vector<Leak> leaks = check_leaks(loaded->dataset);
  if (options.json) {
    auto object = value_to_json(to_value(loaded->summary));
    object["leaks"] = nlohmann::ordered_json::array();
    for (const Leak& leak : leaks) object["leaks"].push_back(to_string(leak));
    out.print(object.dump(2) + "\n");
  } else {
    std::string text = describe(loaded->summary);
    text +=
        fmt::format("leaks of test or validation items into training material: {}\n", leaks.size());
    for (const Leak& leak : leaks) text += "  " + to_string(leak) + "\n";
    out.print(text);
  }
  return leaks.empty() ? exit_done : exit_failed;
}

}  // namespace

VerbAction define_dataset(CLI::App& command) {
  command.require_subcommand(1);
  auto* show_command = command.add_subcommand(
      "show", "Users, items, splits, skipped rows with reasons, and what the leak detector finds");
  auto options = std::make_shared<ShowOptions>();
  show_command->add_option("SOURCE", options->source, "A spec, or a canonical .jsonl[.gz] file")
      ->required();
  show_command->add_flag("--json", options->json, "Print JSON");
  return [options](Output& out) { return show(*options, out); };
}

}  // namespace prefgrid
