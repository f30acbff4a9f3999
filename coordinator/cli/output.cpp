#include "coordinator/cli/output.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

// Descriptors 0, 1 and 2 that are closed would be given to the next files that are opened, and
// text meant for a person would be written into them. These take reads only: writing still fails.
void keep_standard_descriptors() {
  for (;;) {
    const int lowest = ::open("/dev/null", O_RDONLY);
    if (lowest < 0) return;
    if (lowest <= 2) continue;
    ::close(lowest);
    return;
  }
}

}  // namespace

Output::Output(int descriptor) : descriptor_(descriptor) {
  keep_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes is an error of write, like others
}

void Output::print(std::string_view text) {
  if (failed_) return;
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor_, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      failed_ = true;
      reader_gone_ = errno == EPIPE;
      if (!reader_gone_) {
        std::fprintf(stderr, "prefgrid: cannot write to standard output: %s\n",
                     std::generic_category().message(errno).c_str());
      }
      return;
    }
  }
}

int Output::exit_code(int of_verb) const {
  if (of_verb != exit_done && of_verb != exit_incomplete) return of_verb;
  if (reader_gone_) return exit_reader_gone;
  return failed_ ? static_cast<int>(exit_failed) : of_verb;
}

}  // namespace prefgrid
