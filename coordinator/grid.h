// The grid of an experiment without its users: which methods meet which models, seeds, policies
// and decoders. Pure; what the catalogue forbids is refused here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "coordinator/spec.h"
#include "experiments/catalog/catalog.h"

namespace prefgrid {

// Where a method's frozen features come from.
enum class Features : std::uint8_t { none, bow, global_bt };

// One reward configuration, or one way of prompting: a method at a reward backbone and a seed.
struct GridPoint {
  std::size_t method = 0;  // index into spec.methods
  Features features = Features::none;
  std::optional<std::size_t> backbone;  // index into spec.models; nullopt: no language model
  std::optional<std::uint64_t> seed;    // only if the method, or what it builds on, reads one
  std::vector<std::size_t> policies;    // indices into spec.models: whom it guides or prompts
  std::vector<std::size_t> decoders;    // indices into spec.decoders that the method allows
};

// In a fixed order: methods as listed, models by name, seeds as listed. Errors name the spec's
// line: two vocabularies, prompts longer than a model's context.
Result<std::vector<GridPoint>> expand_grid(const ExperimentSpec& spec, const Catalog& catalog);

// Indices into spec.models: their order in the file never changes a plan.
std::vector<std::size_t> models_by_name(const ExperimentSpec& spec);

// The one global_bt row whose backbone makes the features of others: the listed one, or none if it
// is not listed (its defaults then hold). Error at `mark`: several are listed.
Result<std::optional<std::size_t>> feature_source(const ExperimentSpec& spec, YamlMark mark);

// A method needs one of the listed decoders, a listed decoder a method that it serves.
Result<void> check_pairings(const ExperimentSpec& spec, const Catalog& catalog);

// "spec.yaml:3:7: what"
Error refused_at(const ExperimentSpec& spec, YamlMark mark, const std::string& what);

// Whether the experiment has this part: its number of items is not 0.
bool has_policy_accuracy(const ExperimentSpec& spec, const Catalog& catalog);
bool has_generation(const ExperimentSpec& spec, const Catalog& catalog);

}  // namespace prefgrid
