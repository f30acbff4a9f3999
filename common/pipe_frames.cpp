#include "common/pipe_frames.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "common/files.h"
#include "common/limits.h"

namespace prefgrid {
namespace {

constexpr std::size_t prefix_bytes = 4;
constexpr std::size_t read_bytes_at_once = 64 << 10;

ssize_t write_some(int descriptor, std::string_view bytes) {
  const ssize_t sent = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  return ::write(descriptor, bytes.data(), bytes.size());
}

void wait_writable(int descriptor) {
  pollfd waiting{descriptor, POLLOUT, 0};
  ::poll(&waiting, 1, -1);  // whatever it says, the next write tells what is the matter
}

}  // namespace

Result<void> write_frame(int descriptor, std::string_view body) {
  PREFGRID_CHECK(body.size() <= limits::message_bytes,
                 "a frame of " + std::to_string(body.size()) + " bytes");
  std::string frame;
  frame.reserve(prefix_bytes + body.size());
  for (std::size_t i = 0; i < prefix_bytes; ++i) {
    frame += static_cast<char>(body.size() >> (8 * i) & 0xFF);
  }
  frame += body;
  std::string_view rest = frame;
  while (!rest.empty()) {
    const ssize_t count = write_some(descriptor, rest);
    if (count >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      wait_writable(descriptor);
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return Error{ErrorCode::unavailable, "the other side of the pipe is gone"};
    } else if (errno != EINTR) {
      return os_error(errno, "cannot write to the pipe");
    }
  }
  return {};
}

Result<bool> FrameReader::fill(int descriptor) {
  if (used_ > 0) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  const std::size_t before = buffer_.size();
  buffer_.resize(before + read_bytes_at_once);
  ssize_t count;
  do {
    count = ::read(descriptor, buffer_.data() + before, read_bytes_at_once);
  } while (count < 0 && errno == EINTR);
  const int problem = count < 0 ? errno : 0;
  buffer_.resize(before + (count > 0 ? static_cast<std::size_t>(count) : 0));
  if (problem == EAGAIN) return true;
  if (problem == ECONNRESET) return false;  // closed while something of ours was unread
  if (problem != 0) return os_error(problem, "cannot read from the pipe");
  return count > 0;
}

Result<std::optional<std::string>> FrameReader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(used_);
  if (rest.size() < prefix_bytes) return std::optional<std::string>();
  std::size_t length = 0;
  for (std::size_t i = 0; i < prefix_bytes; ++i) {
    length |= std::size_t{static_cast<unsigned char>(rest[i])} << (8 * i);
  }
  if (length > limits::message_bytes) {
    return invalid_input("a frame of " + std::to_string(length) +
                         " bytes came through the pipe, over the limit of " +
                         std::to_string(limits::message_bytes));
  }
  if (rest.size() - prefix_bytes < length) return std::optional<std::string>();
  used_ += prefix_bytes + length;
  return std::optional<std::string>(rest.substr(prefix_bytes, length));
}

}  // namespace prefgrid
