// A tmpfs of a few megabytes, to be filled. Mounting one takes root; where that is refused the test
// says so and does nothing.
#pragma once

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include "common/files.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {

class SmallDisk {
 public:
  explicit SmallDisk(int megabytes) {
    const std::string size = "size=" + std::to_string(megabytes) + "m";
    mounted_ = ::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, size.c_str()) == 0;
    if (!mounted_) std::puts("skipped: this process may not mount a tmpfs");
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path store() const { return path() / "store"; }
  // Writes a file until about `left` bytes are free, with 0 until nothing more is taken.
  void fill(std::uint64_t left = 0) const {
    const std::uint64_t free = std::filesystem::space(path()).available;
    const Descriptor file(::open(filler().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    const std::string block(64 << 10, 'f');
    std::uint64_t bytes = left == 0 ? UINT64_MAX : free - std::min(free, left);
    while (bytes >= block.size() && ::write(file.get(), block.data(), block.size()) > 0) {
      bytes -= block.size();
    }
  }
  void make_room() const { std::filesystem::remove(filler()); }

 private:
  std::filesystem::path filler() const { return folder_.path() / "filler"; }
  TempDir folder_;
  bool mounted_ = false;
};

}  // namespace prefgrid
