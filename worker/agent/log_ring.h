// The last bytes of an endless log. Single-threaded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace prefgrid {

class LogRing {
 public:
  explicit LogRing(std::size_t capacity) : capacity_(capacity) {}

  void append(std::string_view text) {
    if (text.size() >= capacity_) {
      text_.assign(text.substr(text.size() - capacity_));
      return;
    }
    text_.append(text);
    // Cut only when it has doubled: each byte is moved at most once.
    if (text_.size() >= 2 * capacity_) text_.erase(0, text_.size() - capacity_);
  }
  // The last `capacity` bytes; forgets them.
  std::string take() {
    if (text_.size() > capacity_) text_.erase(0, text_.size() - capacity_);
    return std::exchange(text_, {});
  }

 private:
  std::size_t capacity_;
  std::string text_;
};

}  // namespace prefgrid
