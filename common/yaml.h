// YAML, strictly: text -> our own tree with positions, walked once with caps. The only file pair
// that includes yaml-cpp. Duplicate keys, a second document, anchors with cycles, tabs, non-UTF-8
// and over-size files are errors. Scalars keep their text and whether they were quoted, so `no`,
// `0123` and `12:30` stay what the person wrote until a field's type is known.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/result.h"

namespace prefgrid {

struct YamlMark {
  int line = 1;    // from 1
  int column = 1;  // from 1
};

struct YamlNode;
struct YamlNull {};
struct YamlScalar {
  std::string text;
  bool quoted = false;
};
using YamlList = std::vector<YamlNode>;
struct YamlEntry;
using YamlMap = std::vector<YamlEntry>;  // in the order of the file; keys are unique

struct YamlNode {
  YamlMark mark;
  std::variant<YamlNull, YamlScalar, YamlList, YamlMap> content;
};
struct YamlEntry {
  std::string key;
  YamlMark key_mark;
  YamlNode value;
};

// `name` is what errors call the file: "spec.yaml:3:7: ...".
Result<YamlNode> parse_yaml(std::string_view text, const std::string& name);
Result<YamlNode> load_yaml(const std::filesystem::path& file);

// A scalar's value by a field's type. Integers: [+-]?[0-9]+, nothing else. Reals: those
// and decimal or exponent forms; NaN and infinity are refused. Booleans: true, false. Text: any
// scalar as written. Errors carry no position: the caller adds it.
Result<bool> yaml_boolean(const YamlNode& node);
Result<std::int64_t> yaml_integer(const YamlNode& node);
Result<double> yaml_real(const YamlNode& node);
Result<std::string> yaml_text(const YamlNode& node);

}  // namespace prefgrid
