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

}  // namespace

Result<std::string> name_or_spec(const std::string& text) {
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(text, ignored);
  if (!is_file && !text.ends_with(".yaml") && !text.ends_with(".yml")) return text;
  PREFGRID_ASSIGN(const YamlNode root, load_yaml(text));
  PREFGRID_ASSIGN(const ExperimentSpec spec, parse_spec(root, text, catalog()));
  return spec.experiment;
}

Result<AskedExperiment> ask_about(const Target& target, const std::string& text, Access access) {
  PREFGRID_ASSIGN(std::string name, name_or_spec(text));
  PREFGRID_ASSIGN(Questions questions, Questions::open(target, name, access));
  AskedExperiment asked{std::move(questions), {}, ""};
  if (name.empty()) return asked;
  PREFGRID_ASSIGN(const std::vector<Known> known, known_experiments(asked.questions));
  PREFGRID_ASSIGN(const std::vector<Known> found, matching(known, name));
  if (found.size() > 1) {
    std::fprintf(stderr,
                 "prefgrid: note: of %zu experiments called %s this is the newest, id %lld\n",
                 found.size(), found.back().name.c_str(), static_cast<long long>(found.back().id));
  }
  asked.name = found.back().name;
  asked.arguments.emplace("experiment", found.back().id);
  return asked;
}

}  // namespace prefgrid
