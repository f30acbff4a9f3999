#include "experiments/datasets/dataset.h"

#include <cstdio>
#include <memory>

#include "common/yaml.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"
#include "coordinator/spec.h"
#include "experiments/catalog/catalog.h"
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
  PREFGRID_ASSIGN(const YamlNode root, load_yaml(source));
  PREFGRID_ASSIGN(const ExperimentSpec spec, parse_spec(root, source, catalog()));
  return load_dataset(spec.dataset);
}

int show(const ShowOptions& options) {
  const auto loaded = load(options.source);
  if (!loaded) return report_error(loaded.error());
  const std::vector<Leak> leaks = check_leaks(loaded->dataset);
  if (options.json) {
    auto out = value_to_json(to_value(loaded->summary));
    out["leaks"] = nlohmann::ordered_json::array();
    for (const Leak& leak : leaks) out["leaks"].push_back(to_string(leak));
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    std::fputs(describe(loaded->summary).c_str(), stdout);
    std::printf("leaks of test or validation items into training material: %zu\n", leaks.size());
    for (const Leak& leak : leaks) std::printf("  %s\n", to_string(leak).c_str());
  }
  return leaks.empty() ? exit_done : exit_incomplete;
}

}  // namespace

VerbAction define_dataset(CLI::App& command) {
  command.require_subcommand(1);
  auto* show_command = command.add_subcommand(
      "show", "Users, items, splits, skipped rows with reasons, and what the leak detector finds");
  auto options = std::make_shared<ShowOptions>();
  show_command->add_option("source", options->source, "A spec, or a canonical .jsonl[.gz] file")
      ->required();
  show_command->add_flag("--json", options->json, "Print JSON");
  return [options] { return show(*options); };
}

}  // namespace prefgrid
