// Always-on checks for bugs: they print where, what and the values in it, and abort.
#pragma once

#include <string>

namespace prefgrid {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& detail);
}

#define PREFGRID_CHECK(condition, detail)                                               \
  do {                                                                                  \
    if (!(condition)) ::prefgrid::check_failed(__FILE__, __LINE__, #condition, detail); \
  } while (false)
