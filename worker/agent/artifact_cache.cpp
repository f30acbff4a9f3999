#include "worker/agent/artifact_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "common/files.h"
#include "common/sha256.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

struct Object {
  fs::path path;
  ArtifactDigest digest;
  std::uint64_t bytes = 0;
  fs::file_time_type used;
};

// Another agent may remove files meanwhile: what vanishes is skipped.
std::vector<Object> list_objects(const fs::path& folder) {
  std::vector<Object> objects;
  std::error_code problem;
  for (fs::recursive_directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    std::error_code gone;
    if (!fs::is_regular_file(entry->symlink_status(gone)) || gone) continue;
    const auto digest = ArtifactDigest::from_hex(entry->path().filename().string());
    const std::uint64_t bytes = entry->file_size(gone);
    const fs::file_time_type used = entry->last_write_time(gone);
    if (digest && !gone) objects.push_back({entry->path(), *digest, bytes, used});
  }
  return objects;
}

void remove_old_partials(const fs::path& folder) {
  std::error_code ignored;
  const auto limit = fs::file_time_type::clock::now() - std::chrono::hours(24);
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.last_write_time(ignored) < limit) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

Result<ArtifactCache> ArtifactCache::open(const fs::path& folder, std::uint64_t max_bytes) {
  std::error_code problem;
  for (const char* part : {"objects", "partial", "agents"}) {
    fs::create_directories(folder / part, problem);
    if (problem) {
      Error error =
          os_error(problem.value(), "cannot make the cache folder " + (folder / part).string());
      error.message += "; choose another with --cache";
      return error;
    }
  }
  const fs::path absolute = fs::absolute(folder, problem);
  if (problem) return Error{ErrorCode::io, "no path to " + folder.string()};
  ArtifactCache cache(absolute.lexically_normal(), max_bytes);
  remove_old_partials(cache.folder_ / "partial");
  for (const Object& object : list_objects(cache.folder_ / "objects")) cache.bytes_ += object.bytes;
  return cache;
}

fs::path ArtifactCache::object_path(const ArtifactDigest& digest) const {
  const std::string hex = digest.hex();
  return folder_ / "objects" / hex.substr(0, 2) / hex;
}

std::optional<fs::path> ArtifactCache::find(const ArtifactDigest& digest, std::uint64_t size) {
  const fs::path path = object_path(digest);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  bool whole = static_cast<std::uint64_t>(status.st_size) == size;
  if (whole && !verified_.contains(digest)) {
    const auto actual = digest_of_file(path);
    whole = actual && *actual == digest;
  }
  if (!whole) {
    ::unlink(path.c_str());
    verified_.erase(digest);
    return std::nullopt;
  }
  verified_.insert(digest);
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return path;
}

Result<fs::path> ArtifactCache::adopt(const fs::path& file, const ArtifactDigest& digest,
                                      std::uint64_t size) {
  const fs::path path = object_path(digest);
  std::error_code problem;
  fs::create_directories(path.parent_path(), problem);
  if (problem) return os_error(problem.value(), "cannot make " + path.parent_path().string());
  ::chmod(file.c_str(), 0444);
  if (::rename(file.c_str(), path.c_str()) != 0) {
    return os_error(errno, "cannot move " + file.string() + " into the cache");
  }
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  bytes_ += size;
  verified_.insert(digest);
  return path;
}

Result<fs::path> ArtifactCache::insert(std::string_view content, const ArtifactDigest& digest) {
  if (digest_of(content) != digest) {
    return invalid_input("inline content of " + digest.short_hex() + " has another digest");
  }
  const fs::path file = partial_file();
  const Descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!out) return os_error(errno, "cannot create " + file.string());
  if (const auto written = write_all(out.get(), content, file.string()); !written) {
    ::unlink(file.c_str());
    return written.error();
  }
  return adopt(file, digest, content.size());
}

fs::path ArtifactCache::partial_file() {
  // The boot-relative start time tells two processes with one number apart.
  static const std::string process = [] {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return std::to_string(::getpid()) + "-" + std::to_string(now.tv_sec) +
           std::to_string(now.tv_nsec);
  }();
  return folder_ / "partial" / (process + "-" + std::to_string(next_partial_++));
}

void ArtifactCache::shrink(const std::set<ArtifactDigest>& keep) {
  if (bytes_ <= max_bytes_) return;
  shrink_to(max_bytes_ / 10 * 9, keep);  // not again for the next small file
}

void ArtifactCache::give_way(const std::set<ArtifactDigest>& keep) {
  shrink_to(0, keep);
}

void ArtifactCache::shrink_to(std::uint64_t goal, const std::set<ArtifactDigest>& keep) {
  std::vector<Object> objects = list_objects(folder_ / "objects");
  bytes_ = 0;
  for (const Object& object : objects) bytes_ += object.bytes;
  std::sort(objects.begin(), objects.end(),
            [](const Object& a, const Object& b) { return a.used < b.used; });
  for (const Object& object : objects) {
    if (bytes_ <= goal) break;
    if (keep.contains(object.digest)) continue;
    if (::unlink(object.path.c_str()) == 0) bytes_ -= object.bytes;
    verified_.erase(object.digest);
  }
}

}  // namespace prefgrid
