#include "worker/executor/jobs/generation_metrics.h"

#include "experiments/metrics/rouge.h"
#include "experiments/metrics/style.h"
#include "experiments/metrics/text_metrics.h"

namespace prefgrid {

void GenerationTally::add_value(std::size_t place, std::string_view name, double value) {
  if (metrics_.size() == place) metrics_.push_back({std::string(name), std::nullopt, 0, 0, 0});
  metrics_[place].sum += value;
  metrics_[place].count += 1;
}

void GenerationTally::add(std::string_view generated, std::string_view reference) {
  const Rouge scores = rouge(reference, generated);
  add_value(0, "rouge1", 100 * scores.rouge1);
  add_value(1, "rouge2", 100 * scores.rouge2);
  add_value(2, "rougeL", 100 * scores.rougeL);
  add_value(3, "style_match", style_match(reference, generated) ? 1 : 0);
  add_value(4, "exact", exact_match(reference, generated) ? 1 : 0);
  add_value(5, "length_ratio", length_ratio(reference, generated));
}

}  // namespace prefgrid
