#include "coordinator/store/disk.h"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <cerrno>

#include "common/files.h"
#include "common/limits.h"

namespace prefgrid {
namespace {

constexpr const char* ballast_name = "ballast";

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

std::filesystem::path nearest_existing(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::path place = std::filesystem::absolute(folder, ignored);
  while (place.has_relative_path() && !std::filesystem::exists(place, ignored)) {
    place = place.parent_path();
  }
  return place;
}

}  // namespace

Result<std::uint64_t> free_bytes(const std::filesystem::path& folder) {
  struct statvfs facts {};
  if (::statvfs(folder.c_str(), &facts) != 0) {
    return os_error(errno, "cannot ask for the free space of " + folder.string());
  }
  return static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
}

Result<void> check_room_to_start(const std::filesystem::path& folder) {
  PREFGRID_ASSIGN(std::uint64_t free, free_bytes(nearest_existing(folder)));
  std::error_code missing;
  const auto ballast = std::filesystem::file_size(folder / ballast_name, missing);
  if (!missing) free += ballast;  // a store that is there holds a part of it already
  if (free >= limits::free_bytes_to_start) return {};
  return Error{ErrorCode::out_of_space, "the disk of " + folder.string() + " has " +
                                            mebibytes(free) + " free; a store needs " +
                                            mebibytes(limits::free_bytes_to_start) +
                                            " to start: make room, or choose another folder"};
}

bool hold_ballast(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / ballast_name;
  std::error_code missing;
  if (std::filesystem::file_size(file, missing) >= ballast_bytes && !missing) return true;
  int problem = 0;
  {
    const Descriptor ballast(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!ballast) return false;
    problem = ::posix_fallocate(ballast.get(), 0, static_cast<off_t>(ballast_bytes));
  }
  if (problem != 0) drop_ballast(folder);
  return problem == 0;
}

void drop_ballast(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::remove(folder / ballast_name, ignored);
}

}  // namespace prefgrid
