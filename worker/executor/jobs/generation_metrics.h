// Sums of the text metrics of one user's generations.
#pragma once

#include <string_view>
#include <vector>

#include "common/job.h"

namespace prefgrid {

class GenerationTally {
 public:
  void add(std::string_view generated, std::string_view reference);
  // rouge1, rouge2, rougeL (x100), style_match, exact, length_ratio.
  std::vector<Metric> take() { return std::move(metrics_); }

 private:
  void add_value(std::size_t place, std::string_view name, double value);

  std::vector<Metric> metrics_;
};

}  // namespace prefgrid
