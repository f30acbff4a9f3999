#include "common/statistics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include "common/random.h"
#include "tests/support/seed.h"

namespace prefgrid {
namespace {

std::vector<double> normal_sample(std::size_t count, double centre, double deviation) {
  RandomStream random(test_seed(), "sample");
  std::vector<double> values(count);
  for (double& value : values) value = centre + deviation * random.normal();
  return values;
}

}  // namespace

TEST_CASE("the mean of nothing is NaN, of others the mean") {
  CHECK(std::isnan(mean({})));
  CHECK(mean(std::vector<double>{1, 2, 6}) == 3);
}

TEST_CASE("the interval of one value, or of equal values, is that value twice") {
  for (const std::size_t count : {1, 3, 100}) {
    const Interval interval = bootstrap_mean(std::vector<double>(count, 0.1), test_seed());
    CHECK(interval.low == 0.1);
    CHECK(interval.high == 0.1);
  }
}

TEST_CASE("no values, or one that is not finite, have no interval") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(std::isnan(bootstrap_mean({}, 1).low));
  CHECK(std::isnan(bootstrap_mean(std::vector<double>{1, infinity}, 1).low));
  CHECK(std::isnan(bootstrap_mean(std::vector<double>{1, std::nan("")}, 1).high));
}

TEST_CASE("for many values the interval is the normal one: 1.96 standard errors each way") {
  const auto values = normal_sample(1'000, 3, 2);
  const double centre = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  const double n = static_cast<double>(values.size());
  const double error = std::sqrt(squares / n / n);
  const Interval interval = bootstrap_mean(values, test_seed(), 20'000);
  CHECK(interval.low == doctest::Approx(centre - 1.95996 * error).epsilon(0.003));
  CHECK(interval.high == doctest::Approx(centre + 1.95996 * error).epsilon(0.003));
}

TEST_CASE("for two values the resampled means are binomial, so the bounds are the values") {
  // Each of (0, 0), (1, 1) has probability 1/4, far over 2.5 %.
  const Interval interval = bootstrap_mean(std::vector<double>{0, 1}, test_seed());
  CHECK(interval.low == 0);
  CHECK(interval.high == 1);
}

TEST_CASE("the bounds are type-7 percentiles of the resampled means, by a second way") {
  const std::vector<double> values = {0.2, 0.9, 0.4, 0.7, 0.1, 0.5, 0.3};
  const std::uint64_t seed = 0x123456789abcdef0;
  const int draws = 150;
  std::vector<double> means;
  for (std::uint32_t draw = 0; draw < draws; ++draw) {
    double sum = 0;
    for (std::uint32_t i = 0; i < 7; ++i) {
      const auto block = philox({i / 4, draw, 0x626F6F74, 0}, {0x9abcdef0, 0x12345678});
      sum += values[static_cast<std::size_t>(7.0 * (block[i % 4] / 4294967296.0))];
    }
    means.push_back(sum / 7);
  }
  std::sort(means.begin(), means.end());
  // (150 - 1) * 0.025 = 3.725 and (150 - 1) * 0.975 = 145.275
  const double low = 0.275 * means[3] + 0.725 * means[4];
  const double high = 0.725 * means[145] + 0.275 * means[146];
  const Interval interval = bootstrap_mean(values, seed, draws);
  CHECK(interval.low == doctest::Approx(low).epsilon(1e-12));
  CHECK(interval.high == doctest::Approx(high).epsilon(1e-12));
}

TEST_CASE("the same values and seed give the same bits, another seed gives others") {
  const auto values = normal_sample(50, 0, 1);
  const Interval first = bootstrap_mean(values, 7);
  const Interval again = bootstrap_mean(values, 7);
  CHECK(first.low == again.low);
  CHECK(first.high == again.high);
  CHECK(bootstrap_mean(values, 8).low != first.low);
  CHECK(bootstrap_mean(values, 7 + (1ULL << 32)).low != first.low);
}

TEST_CASE("95 of 100 intervals cover the true mean, give or take") {
  RandomStream random(test_seed(), "coverage");
  int covered = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<double> values(60);
    for (double& value : values) value = random.uniform();
    const Interval interval = bootstrap_mean(values, static_cast<std::uint64_t>(trial), 500);
    covered += interval.low <= 0.5 && 0.5 <= interval.high ? 1 : 0;
  }
  CHECK(covered > 400 * 0.89);
  CHECK(covered < 400 * 0.99);
}

TEST_CASE("2,000 draws over 1,000 users take milliseconds of processor time") {
  const auto values = normal_sample(1'000, 0, 1);
  const std::clock_t start = std::clock();
  bootstrap_mean(values, 1);
  const double took_ms = 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  MESSAGE("bootstrap_mean: " << took_ms << " ms");
#ifdef __OPTIMIZE__
  CHECK(took_ms < 90);  // 9
#endif
}

TEST_CASE("a pooled figure with equal counts has the interval of the mean") {
  const auto sums = normal_sample(40, 3, 2);
  const std::vector<double> counts(sums.size(), 4);
  std::vector<double> means = sums;
  for (double& value : means) value /= 4;
  const Interval pooled = bootstrap_ratio(sums, counts, test_seed());
  const Interval macro = bootstrap_mean(means, test_seed());
  CHECK(pooled.low == doctest::Approx(macro.low).epsilon(1e-12));
  CHECK(pooled.high == doctest::Approx(macro.high).epsilon(1e-12));
}

TEST_CASE("a pooled figure weighs users by their items: for two, the bounds are theirs") {
  // 9 of 10 and 0 of 2: each alone has probability 1/4, far over 2.5 %.
  const Interval interval =
      bootstrap_ratio(std::vector<double>{9, 0}, std::vector<double>{10, 2}, test_seed());
  CHECK(interval.low == 0);
  CHECK(interval.high == 0.9);
}

}  // namespace prefgrid
