#include "common/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "common/check.h"
#include "common/random.h"

namespace prefgrid {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// The sum over one resample of `values` with replacement. Draw number i of resample r is word
// i % 4 of the Philox block (i / 4, r): no state, so nothing depends on the order of evaluation.
// An index is word * n >> 32: its bias is below n / 2^32. Four partial sums, one for each word:
// a single one would wait for itself.
double resample_sum(std::span<const double> values, std::uint32_t resample,
                    std::array<std::uint32_t, 2> key) {
  constexpr std::uint32_t purpose = 0x626F6F74;  // "boot"
  const std::uint64_t count = values.size();
  std::array<double, 4> sums{};
  std::uint32_t number = 0;
  const auto next_block = [&] { return philox({number++, resample, purpose, 0}, key); };
  for (std::uint64_t whole = count / 4; whole > 0; --whole) {
    const auto block = next_block();
    for (std::size_t i = 0; i < 4; ++i) sums[i] += values[block[i] * count >> 32];
  }
  if (count % 4 != 0) {
    const auto block = next_block();
    for (std::size_t i = 0; i < count % 4; ++i) sums[i] += values[block[i] * count >> 32];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Type 7 of Hyndman and Fan (1996): linear between the order statistics around (n - 1) p.
double percentile(const std::vector<double>& sorted, double p) {
  const double place = static_cast<double>(sorted.size() - 1) * p;
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return not_a_number;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

Interval bootstrap_mean(std::span<const double> per_user, std::uint64_t seed, int draws) {
  PREFGRID_CHECK(draws > 0, std::to_string(draws) + " draws");
  PREFGRID_CHECK(per_user.size() <= std::numeric_limits<std::uint32_t>::max(), "too many values");
  const bool finite = std::all_of(per_user.begin(), per_user.end(),
                                  [](double value) { return std::isfinite(value); });
  if (per_user.empty() || !finite) return {not_a_number, not_a_number};

  // Measured from the first value, so that equal values give exactly themselves.
  const double origin = per_user.front();
  std::vector<double> shifted(per_user.begin(), per_user.end());
  for (double& value : shifted) value -= origin;
  const std::array key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  std::vector<double> means(static_cast<std::size_t>(draws));
  for (std::size_t draw = 0; draw < means.size(); ++draw) {
    means[draw] = resample_sum(shifted, static_cast<std::uint32_t>(draw), key) /
                  static_cast<double>(shifted.size());
  }
  std::sort(means.begin(), means.end());
  return {origin + percentile(means, 0.025), origin + percentile(means, 0.975)};
}

}  // namespace prefgrid
