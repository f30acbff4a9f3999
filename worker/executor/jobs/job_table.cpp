#include "worker/executor/jobs/job_table.h"

#include <array>
#include <string>

namespace prefgrid {

std::span<const JobKind> job_kinds() {
  static constexpr std::array<JobKind, 10> kinds = {{
      {"adapt.lore", run_adapt_lore},
      {"embed.bow", run_embed_bow},
      {"embed.lm", run_embed_lm},
      {"generate.args", run_generate_args},
      {"generate.greedy", run_generate_greedy},
      {"policy_accuracy", run_policy_accuracy},
      {"pretrain", run_pretrain},
      {"rm_accuracy", run_rm_accuracy},
      {"train.global_bt", run_train_global_bt},
      {"train.lore", run_train_lore},
  }};
  return kinds;
}

ArtifactRef artifact(std::string_view name) {
  ArtifactRef reference;
  reference.name = name;
  return reference;
}

Metric single(std::string_view name, double value) {
  Metric metric;
  metric.name = name;
  metric.sum = value;
  metric.count = 1;
  return metric;
}

}  // namespace prefgrid
