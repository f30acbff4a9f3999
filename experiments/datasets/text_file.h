// A whole text file, plain or gzip, told apart by its first two bytes. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/result.h"

namespace prefgrid {

inline constexpr std::uint64_t dataset_file_bytes = 4ull << 30;  // unpacked

// Errors name the file: missing, a folder, damaged or truncated gzip, more than max_bytes unpacked.
Result<std::string> read_text_file(const std::filesystem::path& file,
                                   std::uint64_t max_bytes = dataset_file_bytes);

}  // namespace prefgrid
