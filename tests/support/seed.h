#pragma once

#include <cstdint>
#include <cstdlib>

namespace prefgrid {

inline std::uint64_t test_seed() {
  const char* text = std::getenv("PREFGRID_TEST_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 1;
}

}  // namespace prefgrid
