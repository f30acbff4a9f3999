// Strict reading of JSON files from outside: capped, no duplicate keys, UTF-8 only. Any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/result.h"

namespace prefgrid {

// `where` names the source in errors, which say line and column or the duplicate key.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& where);
// The top level must be an object.
Result<nlohmann::json> read_json_object(const std::filesystem::path& file, std::size_t max_bytes);

}  // namespace prefgrid
