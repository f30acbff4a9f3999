// Statistics that tables and reports use. Seeded: the same input gives the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace prefgrid {

struct Interval {
  double low = 0;
  double high = 0;
};

double mean(std::span<const double> values);  // NaN of none

// Percentile bootstrap of the mean over the given per-user values, 95 %. `draws` resamples with a
// counter-based generator; interpolated percentiles (type 7). Of one value: that value twice.
Interval bootstrap_mean(std::span<const double> per_user, std::uint64_t seed, int draws = 2'000);

// The same for a pooled figure, sum of sums / sum of counts, users resampled. counts[i] > 0.
Interval bootstrap_ratio(std::span<const double> sums, std::span<const double> counts,
                         std::uint64_t seed, int draws = 2'000);

}  // namespace prefgrid
