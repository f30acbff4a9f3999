// Whole files, safely: capped reads and writes that a crash cannot tear. Any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/result.h"

namespace prefgrid {

// `what` ("cannot open spec.yaml") with errno's text. ENOENT and ENOTDIR are not_found; ENOSPC and
// EDQUOT out_of_space; the rest io.
Error os_error(int error_number, const std::string& what);

// An open file that closes itself; -1 is none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  int release();
  void close();

 private:
  int number_ = -1;
};

// The whole content of a regular file. Refuses folders, pipes and devices, and more than
// max_bytes (also of a file that grows meanwhile), saying which.
Result<std::string> read_file(const std::filesystem::path& file, std::size_t max_bytes);

// Writes a temporary file beside it, syncs, renames, syncs the folder: after a crash the old or the
// new content is there, whole. The folder must exist.
Result<void> write_file_atomic(const std::filesystem::path& file, std::string_view content,
                               unsigned mode = 0644);

// Makes a folder's entries durable (after creating or renaming a file in it).
Result<void> sync_folder(const std::filesystem::path& folder);

// Writes all of it; retries short writes and EINTR. `what` names the target in errors.
Result<void> write_all(int descriptor, std::string_view content, const std::string& what);

}  // namespace prefgrid
