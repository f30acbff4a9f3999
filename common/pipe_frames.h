// Length-prefixed frames over a stream descriptor (a socket pair, a pipe):
// [u32 length, little-endian][body], at most limits::message_bytes of body.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace prefgrid {

// Blocking, also on a non-blocking descriptor; retries short writes and EINTR. An error when the
// other side is gone (no SIGPIPE on a socket; on a pipe the program must ignore that signal).
Result<void> write_frame(int descriptor, std::string_view body);

// Collects bytes from a descriptor and hands out whole frames.
class FrameReader {
 public:
  // Reads what is there (one read call; nothing there on a non-blocking one is fine).
  // False: the other side closed. An error: a read failed.
  Result<bool> fill(int descriptor);
  // The next whole frame, if any. An error: a length over limits::message_bytes; the stream is
  // then out of step, and every later call says so again.
  Result<std::optional<std::string>> next();
  // Bytes of an unfinished frame: more than none at the close means that it was torn.
  std::size_t pending() const { return buffer_.size() - used_; }

 private:
  std::string buffer_;
  std::size_t used_ = 0;  // bytes of buffer_ that were handed out
};

}  // namespace prefgrid
