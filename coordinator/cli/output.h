// Standard output as a verb sees it: what cannot be written shows in the exit code. One thread.
#pragma once

#include <string_view>

namespace prefgrid {

class Output {
 public:
  // A descriptor that is closed stays unusable: no file that is opened later takes its number.
  explicit Output(int descriptor = 1);

  // Written at once. After the first failure, which is said on stderr unless the reader has gone,
  // further text is dropped.
  void print(std::string_view text);
  // Nobody reads any more (`| head -1`): time to stop, without a word.
  bool reader_gone() const { return reader_gone_; }
  // The verb's own, unless it went well and its text did not arrive.
  int exit_code(int of_verb) const;

 private:
  int descriptor_;
  bool failed_ = false;
  bool reader_gone_ = false;
};

}  // namespace prefgrid
