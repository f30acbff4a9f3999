#include "worker/agent/disk_room.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string>

#include "common/files.h"

namespace prefgrid {
namespace {

constexpr std::size_t probe_bytes = 64 << 10;

// Written and synced: a quota of a network disk may speak up only then.
Result<void> write_probe(const std::string& file) {
  const Descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out) return os_error(errno, "cannot create " + file);
  PREFGRID_TRY(write_all(out.get(), std::string(probe_bytes, 'p'), file));
  if (::fsync(out.get()) != 0) return os_error(errno, "cannot sync " + file);
  return {};
}

}  // namespace

std::uint64_t room_in(const std::filesystem::path& folder) {
  const std::string file = (folder / ("room-" + std::to_string(::getpid()))).string();
  const auto written = write_probe(file);
  ::unlink(file.c_str());
  if (!written && written.error().code == ErrorCode::out_of_space) return 0;
  struct statvfs facts {};
  if (::statvfs(folder.c_str(), &facts) != 0) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
}

}  // namespace prefgrid
