#include "common/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace prefgrid {
namespace {

Result<Descriptor> open_file(const std::filesystem::path& file, int flags, unsigned mode,
                             const std::string& what) {
  int number;
  do {
    number = ::open(file.c_str(), flags | O_CLOEXEC, mode);
  } while (number < 0 && errno == EINTR);
  if (number < 0) return os_error(errno, what);
  return Descriptor(number);
}

Result<void> sync(int descriptor, const std::string& what) {
  int outcome;
  do {
    outcome = ::fsync(descriptor);
  } while (outcome != 0 && errno == EINTR);
  if (outcome != 0) return os_error(errno, what);
  return {};
}

// Write, sync, rename. The caller removes the temporary file if this fails.
Result<void> write_and_rename(const std::string& temporary, Descriptor descriptor,
                              const std::filesystem::path& file, std::string_view content,
                              unsigned mode) {
  if (::fchmod(descriptor.get(), mode) != 0) return os_error(errno, "cannot chmod " + temporary);
  PREFGRID_TRY(write_all(descriptor.get(), content, temporary));
  PREFGRID_TRY(sync(descriptor.get(), "cannot sync " + temporary));
  descriptor.close();
  if (::rename(temporary.c_str(), file.c_str()) != 0) {
    return os_error(errno, "cannot rename " + temporary + " to " + file.string());
  }
  return {};
}

}  // namespace

Error os_error(int error_number, const std::string& what) {
  ErrorCode code = ErrorCode::io;
  if (error_number == EACCES || error_number == EPERM) code = ErrorCode::invalid_input;
  if (error_number == ENOENT || error_number == ENOTDIR) code = ErrorCode::not_found;
  if (error_number == ENOSPC || error_number == EDQUOT) code = ErrorCode::out_of_space;
  return {code, what + ": " + std::generic_category().message(error_number)};
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = other.release();
  }
  return *this;
}

int Descriptor::release() {
  const int number = number_;
  number_ = -1;
  return number;
}

void Descriptor::close() {
  if (number_ >= 0) ::close(number_);  // Linux closes it even when it says EINTR
  number_ = -1;
}

Result<std::string> read_file(const std::filesystem::path& file, std::size_t max_bytes) {
  const std::string name = file.string();
  // O_NONBLOCK: opening a pipe that nobody writes to must not hang.
  PREFGRID_ASSIGN(const Descriptor descriptor,
                  open_file(file, O_RDONLY | O_NONBLOCK, 0, "cannot open " + name));
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) return os_error(errno, "cannot stat " + name);
  if (S_ISDIR(status.st_mode)) return invalid_input(name + " is a folder, a file is needed");
  if (!S_ISREG(status.st_mode)) return invalid_input(name + " is not a regular file");
  const auto too_large = [&] {
    return invalid_input(name + " is larger than the limit of " + std::to_string(max_bytes) +
                         " bytes");
  };
  const auto stated = static_cast<std::uintmax_t>(status.st_size);
  if (stated > max_bytes) return too_large();

  std::string content(static_cast<std::size_t>(stated) + 1, '\0');
  std::size_t used = 0;
  for (;;) {
    if (used == content.size()) content.resize(2 * content.size());
    const ssize_t count = ::read(descriptor.get(), content.data() + used, content.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_error(errno, "cannot read " + name);
    if (count == 0) break;
    used += static_cast<std::size_t>(count);
    if (used > max_bytes) return too_large();
  }
  content.resize(used);
  return content;
}

Result<void> write_all(int descriptor, std::string_view content, const std::string& what) {
  while (!content.empty()) {
    const ssize_t count = ::write(descriptor, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_error(errno, "cannot write " + what);
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path there = folder.empty() ? "." : folder;
  const std::string what = "cannot sync the folder " + there.string();
  PREFGRID_ASSIGN(const Descriptor descriptor, open_file(there, O_RDONLY | O_DIRECTORY, 0, what));
  return sync(descriptor.get(), what);
}

Result<void> write_file_atomic(const std::filesystem::path& file, std::string_view content,
                               unsigned mode) {
  std::string temporary = file.string() + ".tmp-XXXXXX";
  Descriptor descriptor(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!descriptor) return os_error(errno, "cannot create a file beside " + file.string());
  Result<void> written = write_and_rename(temporary, std::move(descriptor), file, content, mode);
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  return sync_folder(file.parent_path());
}

}  // namespace prefgrid
