// The experiment spec: YAML text -> checked, typed structure. Syntax and examples: docs/spec.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/value.h"
#include "common/yaml.h"
#include "experiments/catalog/catalog.h"

namespace prefgrid {

// One point of a section's grid: a row's name and its fields, defaults left out.
struct ConfiguredRow {
  std::string name;
  ValueMap fields;
  std::string label;  // "rank=5": the fields that the person wrote, for tables
  YamlMark mark;      // where it stands in the file, for later errors
};

struct ModelSpec {
  std::string name;  // display only
  ValueMap fields;   // of catalog kind "pretrain" (architecture and training together)
  YamlMark mark;
};

struct ExperimentSpec {
  std::string file_name;  // for messages
  std::string experiment;
  ValueMap dataset;  // {"kind", "path", options}
  YamlMark dataset_mark;
  std::vector<ModelSpec> models;
  std::vector<ConfiguredRow> methods;  // lists already spanned
  std::vector<ConfiguredRow> decoders;
  ValueMap evaluation;                // the catalogue's evaluation fields, and "weights"
  std::vector<std::string> policies;  // model names; empty: each model guides itself
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> notes;  // what is no error but should be said: a cell listed twice
};

// Errors: "file:line:column: what; what is allowed", one line for each mistake (the first 20, in
// the file's order). Unknown keys come with the nearest known one.
Result<ExperimentSpec> parse_spec(const YamlNode& root, const std::string& file_name,
                                  const Catalog& catalog);

// The error of a step that worked on the dataset section, with the section's place in the spec.
Error in_dataset_section(const ExperimentSpec& spec, Error error);

// For the store: the typed content without marks, and back (marks are then 1:1).
Value to_value(const ExperimentSpec& spec);
Result<ExperimentSpec> spec_from_value(const Value& value);

}  // namespace prefgrid
