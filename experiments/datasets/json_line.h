// One line of JSON Lines, strictly: a flat object of booleans, numbers, texts and lists of texts.
// The only file pair here that parses JSON. A parser is kept for a file; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/result.h"

namespace prefgrid {

struct JsonField {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>> value;
};

// Errors say what is wrong, without file and line: no JSON, not UTF-8, no object, nested objects,
// null, a name twice, a number beyond 64 bits, a NUL in a text.
Result<std::vector<JsonField>> parse_json_line(std::string_view line);

}  // namespace prefgrid
