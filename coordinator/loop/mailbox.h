// Values from any thread to one loop, with a descriptor that wakes it. post() and wake() may be
// called until the mailbox goes; wake() also from a signal handler.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/files.h"

namespace prefgrid {

class WakeUp {
 public:
  WakeUp() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    PREFGRID_CHECK(descriptor_, "no descriptors left: raise `ulimit -n`");
  }
  int poll_fd() const { return descriptor_.get(); }
  void wake() const {
    const std::uint64_t one = 1;
    // Fails only if the counter is full: then the loop is awake already.
    [[maybe_unused]] const ssize_t done = ::write(descriptor_.get(), &one, sizeof one);
  }
  void clear() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t done = ::read(descriptor_.get(), &count, sizeof count);
  }

 private:
  Descriptor descriptor_;
};

template <class T>
class Mailbox {
 public:
  void post(T value) {
    {
      const std::lock_guard lock(mutex_);
      values_.push_back(std::move(value));
    }
    wake_up_.wake();
  }
  std::vector<T> take() {
    wake_up_.clear();
    const std::lock_guard lock(mutex_);
    return std::exchange(values_, {});
  }
  int poll_fd() const { return wake_up_.poll_fd(); }
  void wake() const { wake_up_.wake(); }

 private:
  WakeUp wake_up_;
  std::mutex mutex_;
  std::vector<T> values_;
};

}  // namespace prefgrid
