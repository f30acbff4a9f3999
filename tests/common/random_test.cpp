#include "common/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/support/seed.h"

namespace prefgrid {

TEST_CASE("philox gives Random123's known answers") {
  using Block = std::array<std::uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("stable_hash is the first eight bytes of SHA-256, little-endian") {
  // sha256("abc") = ba7816bf 8f01cfea ... (FIPS 180-2)
  CHECK(stable_hash("abc") == 0xeacf018fbf1678baULL);
}

TEST_CASE("a stream that is moved back gives the same draws again") {
  RandomStream stream(test_seed(), "dropout/layer3");
  for (int i = 0; i < 10; ++i) stream.uniform();
  const std::uint64_t position = stream.position();
  const double normal = stream.normal();
  const std::uint64_t below = stream.below(1000);
  RandomStream other(test_seed(), "dropout/layer3");
  other.seek(position);
  CHECK(other.normal() == normal);
  CHECK(other.below(1000) == below);
}

TEST_CASE("streams of another seed or purpose are different") {
  std::set<std::uint64_t> first_draws;
  for (std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32, ~0ULL}) {
    for (const char* purpose : {"", "a", "b"}) {
      first_draws.insert(RandomStream(seed, purpose).bits());
    }
  }
  CHECK(first_draws.size() == 12);
}

TEST_CASE("uniform draws lie in [0, 1) with the moments of the uniform distribution") {
  RandomStream stream(test_seed(), "uniform");
  const int count = 100'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < count; ++i) {
    const double x = stream.uniform();
    REQUIRE(x >= 0);
    REQUIRE(x < 1);
    sum += x;
    squares += x * x;
  }
  // Five standard errors.
  CHECK(std::abs(sum / count - 0.5) < 5 * std::sqrt(1.0 / 12 / count));
  CHECK(std::abs(squares / count - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / count));
}

TEST_CASE("normal draws have the moments and the tail of the normal distribution") {
  RandomStream stream(test_seed(), "normal");
  const int count = 100'000;
  double sum = 0, squares = 0, fourth = 0;
  int beyond_two = 0;
  for (int i = 0; i < count; ++i) {
    const double x = stream.normal();
    REQUIRE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    beyond_two += std::abs(x) > 2 ? 1 : 0;
  }
  CHECK(std::abs(sum / count) < 5 / std::sqrt(count));
  CHECK(std::abs(squares / count - 1) < 5 * std::sqrt(2.0 / count));
  CHECK(std::abs(fourth / count - 3) < 5 * std::sqrt(96.0 / count));
  const double expected = std::erfc(2 / std::sqrt(2.0));
  CHECK(std::abs(beyond_two / double(count) - expected) < 5 * std::sqrt(expected / count));
}

TEST_CASE("below is uniform over its range, for small and for enormous bounds") {
  RandomStream stream(test_seed(), "below");
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts[stream.below(7)];
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - 10'000.0) * (count - 10'000.0) / 10'000;
  CHECK(chi_squared < 33);  // 6 degrees of freedom, p = 1e-5
  CHECK(stream.below(1) == 0);

  // A modulo would give the lower half of this range twice as often.
  const std::uint64_t bound = 3ULL << 62;
  int low = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t draw = stream.below(bound);
    REQUIRE(draw < bound);
    low += draw < (1ULL << 62) ? 1 : 0;
  }
  CHECK(std::abs(low / 10'000.0 - 1.0 / 3) < 0.025);
}

}  // namespace prefgrid
