// Free space, and a ballast file that is given up first when the disk is full: reopening a
// database needs room for its write-ahead log. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "common/result.h"

namespace prefgrid {

inline constexpr std::uint64_t ballast_bytes = 32ull << 20;

Result<std::uint64_t> free_bytes(const std::filesystem::path& folder);

// Refuses a disk with less than limits::free_bytes_to_start, saying how much is needed and there.
// The folder need not be there yet: its nearest parent that is has the disk.
Result<void> check_room_to_start(const std::filesystem::path& folder);

// True if the ballast is there in full afterwards; no room for it is no error.
bool hold_ballast(const std::filesystem::path& folder);
void drop_ballast(const std::filesystem::path& folder);

}  // namespace prefgrid
