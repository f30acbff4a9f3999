#include "common/check.h"

#include <cstdio>
#include <cstdlib>

namespace prefgrid {

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", file, line, condition, detail.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace prefgrid
