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

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

std::array<std::uint32_t, 2> key_of(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
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
  if (per_user.empty() || !all_finite(per_user)) return {not_a_number, not_a_number};

  // Measured from the first value, so that equal values give exactly themselves.
  const double origin = per_user.front();
  std::vector<double> shifted(per_user.begin(), per_user.end());
  for (double& value : shifted) value -= origin;
  const std::array key = key_of(seed);
  std::vector<double> means(static_cast<std::size_t>(draws));
  for (std::size_t draw = 0; draw < means.size(); ++draw) {
    means[draw] = resample_sum(shifted, static_cast<std::uint32_t>(draw), key) /
                  static_cast<double>(shifted.size());
  }
  std::sort(means.begin(), means.end());
  return {origin + percentile(means, 0.025), origin + percentile(means, 0.975)};
}

Interval bootstrap_ratio(std::span<const double> sums, std::span<const double> counts,
                         std::uint64_t seed, int draws) {
  PREFGRID_CHECK(draws > 0, std::to_string(draws) + " draws");
  PREFGRID_CHECK(sums.size() == counts.size(), "each user has a sum and a count");
  PREFGRID_CHECK(sums.size() <= std::numeric_limits<std::uint32_t>::max(), "too many values");
  if (sums.empty() || !all_finite(sums) || !all_finite(counts)) return {not_a_number, not_a_number};

  const std::array key = key_of(seed);
  std::vector<double> ratios(static_cast<std::size_t>(draws));
  for (std::size_t draw = 0; draw < ratios.size(); ++draw) {
    const auto resample = static_cast<std::uint32_t>(draw);  // the same users above and below
    ratios[draw] = resample_sum(sums, resample, key) / resample_sum(counts, resample, key);
  }
  std::sort(ratios.begin(), ratios.end());
  return {percentile(ratios, 0.025), percentile(ratios, 0.975)};
}

}  // namespace prefgrid
