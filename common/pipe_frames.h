// Length-prefixed frames over a stream descriptor (a socket pair, a pipe).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace prefgrid {

// Blocking; retries short writes and EINTR. An error when the other side is gone.
Result<void> write_frame(int descriptor, std::string_view body);

// Collects bytes from a descriptor and hands out whole frames.
class FrameReader {
 public:
  // Reads what is there (one read call). False: the other side closed. An error: a read failed.
  Result<bool> fill(int descriptor);
  // The next whole frame, if any. An error: a length over limits::message_bytes.
  Result<std::optional<std::string>> next();

 private:
  std::string buffer_;
};

}  // namespace prefgrid
