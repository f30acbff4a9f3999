#include "coordinator/cli/experiments_asked.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "common/text.h"
#include "common/yaml.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/spec.h"
#include "experiments/catalog/catalog.h"

namespace prefgrid {
namespace {

struct Known {
  std::int64_t id = 0;
  std::string name;
};

Result<std::vector<Known>> known_experiments(Questions& questions) {
  PREFGRID_ASSIGN(const Value status, questions.ask("status", {}));
  std::vector<Known> known;
  for (const Value& experiment : field_or<ValueList>(status, "experiments", {})) {
    known.push_back({integer_field(experiment, "id"), text_field(experiment, "name")});
  }
  return known;
}

std::vector<Known> of_name(const std::vector<Known>& known, const std::string& name) {
  std::vector<Known> found;
  std::copy_if(known.begin(), known.end(), std::back_inserter(found),
               [&](const Known& one) { return one.name == name; });
  return found;
}

std::string listed(const std::vector<Known>& known) {
  std::string out;
  for (const Known& one : known) {
    out += (out.empty() ? "" : ", ") + one.name + " (id " + std::to_string(one.id) + ")";
  }
  return out.empty() ? "none" : out;
}

// By name, else by id, else by the start of a name.
Result<std::vector<Known>> matching(const std::vector<Known>& known, const std::string& text) {
  if (auto exact = of_name(known, text); !exact.empty()) return exact;
  std::set<std::string> names;
  for (const Known& one : known) {
    if (std::to_string(one.id) == text) return std::vector<Known>{one};
    if (one.name.starts_with(text)) names.insert(one.name);
  }
  if (names.size() == 1) return of_name(known, *names.begin());
  return Error{ErrorCode::not_found, std::string(names.empty() ? "no" : "more than one") +
                                         " experiment is called " + quoted(text, 80) +
                                         "; there are: " + listed(known)};
}

bool names_spec_file(const std::string& text) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(text, ignored) || text.ends_with(".yaml") ||
         text.ends_with(".yml");
}

Result<ExperimentSpec> read_spec_file(const std::string& file) {
  PREFGRID_ASSIGN(const YamlNode root, load_yaml(file));
  return parse_spec(root, file, catalog());
}

// Of experiments of one name: the newest that this spec made, however it was spelt; else the
// newest.
Result<Known> choose(Questions& questions, const std::vector<Known>& found,
                     const std::optional<ExperimentSpec>& spec, const std::string& text) {
  const Known& newest = found.back();
  for (auto one = found.rbegin(); spec && one != found.rend(); ++one) {
    PREFGRID_ASSIGN(const Value stored, questions.ask("spec", {{"experiment", one->id}}));
    const auto root = parse_yaml(text_field(stored, "spec_text"), text);
    if (!root) continue;
    const auto other = parse_spec(*root, text, catalog());
    if (other && to_value(*other) == to_value(*spec)) return *one;
  }
  const auto id = static_cast<long long>(newest.id);
  if (spec) {
    std::fprintf(stderr,
                 "prefgrid: note: %s says something else now than when it was run; this is "
                 "the newest experiment called %s, id %lld\n",
                 text.c_str(), newest.name.c_str(), id);
  } else if (found.size() > 1) {
    std::fprintf(stderr,
                 "prefgrid: note: of %zu experiments called %s this is the newest, id %lld\n",
                 found.size(), newest.name.c_str(), id);
  }
  return newest;
}

}  // namespace

Result<AskedExperiment> ask_about(const Target& target, const std::string& text, Access access) {
  std::optional<ExperimentSpec> spec;
  if (names_spec_file(text)) {
    PREFGRID_ASSIGN(spec, read_spec_file(text));
  }
  const std::string name = spec ? spec->experiment : text;
  PREFGRID_ASSIGN(Questions questions, Questions::open(target, name, access));
  AskedExperiment asked{std::move(questions), {}, ""};
  if (name.empty()) return asked;
  PREFGRID_ASSIGN(const std::vector<Known> known, known_experiments(asked.questions));
  PREFGRID_ASSIGN(const std::vector<Known> found, matching(known, name));
  PREFGRID_ASSIGN(const Known chosen, choose(asked.questions, found, spec, text));
  asked.name = chosen.name;
  asked.arguments.emplace("experiment", chosen.id);
  return asked;
}

}  // namespace prefgrid
