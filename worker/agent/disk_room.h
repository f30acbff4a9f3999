// How much a job can still write. Any thread; waits for the disk, so not for a loop's own.
#pragma once

#include <cstdint>
#include <filesystem>

namespace prefgrid {

// Free bytes of the folder's file system; 0 where not even a small file finds its place: a quota
// is used up, or no inode is left. A disk that cannot be asked is taken to have room.
std::uint64_t room_in(const std::filesystem::path& folder);

}  // namespace prefgrid
