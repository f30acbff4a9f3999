// Reads YAML nodes by the catalogue's fields and collects what is wrong with them, so that a person
// sees every mistake of a spec at once. Used by spec.cpp alone; lives as long as one parse.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "common/value.h"
#include "common/yaml.h"
#include "experiments/catalog/catalog.h"

namespace prefgrid {

class Diagnostics {
 public:
  explicit Diagnostics(std::string file_name) : file_name_(std::move(file_name)) {}

  void report(YamlMark mark, const std::string& what);
  bool clean() const { return found_.empty(); }
  // All of them in the file's order, one a line. Precondition: !clean().
  Error error() const;
  std::string place(YamlMark mark) const;  // "spec.yaml:3:7"

 private:
  struct Found {
    YamlMark mark;
    std::string what;
  };
  std::string file_name_;
  std::vector<Found> found_;
};

// "a list", "a map", "text", "no value": what a node is, for messages.
std::string node_kind(const YamlNode& node);
std::string joined_names(const std::vector<std::string>& names);
// "unknown field "rnak" of lore, did you mean "rank"? allowed: rank, steps".
std::string unknown_name(const std::string& what, const std::string& name, const std::string& where,
                         const std::vector<std::string>& known);
// Letters, digits, '.', '_', '-', at most 64, not starting with a sign: names of experiments and
// models become folder names and table cells.
bool valid_name(std::string_view name);

// One value of the field's type and range; nullopt after a report.
std::optional<Value> read_value(const Field& field, const YamlNode& node, Diagnostics& problems);

// A row's fields as written, in the order of the catalogue; each with the values it spans.
struct SpannedField {
  const Field* field = nullptr;
  std::vector<Value> values;
};
// `owner` names the row in messages: "lore", "model tiny". `lists_allowed`: a list spans a grid.
std::vector<SpannedField> read_fields(const std::vector<Field>& fields, const YamlMap& map,
                                      YamlMark mark, const std::string& owner, bool lists_allowed,
                                      Diagnostics& problems);

}  // namespace prefgrid
