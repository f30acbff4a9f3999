// Every test program's main. Random tests draw from PREFGRID_TEST_SEED (default 1), printed here, so
// that a failure can be replayed.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "tests/support/seed.h"

int main(int argc, char** argv) {
  std::printf("PREFGRID_TEST_SEED=%llu\n", static_cast<unsigned long long>(prefgrid::test_seed()));
  doctest::Context context(argc, argv);
  return context.run();
}
