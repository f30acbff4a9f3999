// Messages from one thread to another, with a descriptor that a poll can wait on.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/files.h"

namespace prefgrid {

// Any thread may post; one thread takes.
template <class T>
class Mailbox {
 public:
  Mailbox() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    PREFGRID_CHECK(bool(wake_), "no eventfd: errno " + std::to_string(errno));
  }

  void post(T message) {
    const std::lock_guard lock(mutex_);
    if (messages_.empty()) {
      const std::uint64_t one = 1;
      const ssize_t written = ::write(wake_.get(), &one, sizeof one);
      PREFGRID_CHECK(written == sizeof one, "an eventfd refused a write");
    }
    messages_.push_back(std::move(message));
  }

  std::vector<T> take_all() {
    const std::lock_guard lock(mutex_);
    if (messages_.empty()) return {};
    std::uint64_t count = 0;
    const ssize_t read = ::read(wake_.get(), &count, sizeof count);
    PREFGRID_CHECK(read == sizeof count, "an eventfd lost a wake-up");
    return std::exchange(messages_, {});
  }

  int descriptor() const { return wake_.get(); }  // readable while messages wait

 private:
  std::mutex mutex_;
  std::vector<T> messages_;
  Descriptor wake_;
};

}  // namespace prefgrid
