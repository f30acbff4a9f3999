#include <algorithm>
#include <map>

#include "coordinator/core/events.h"
#include "coordinator/plan.h"

namespace prefgrid {

CorePlan core_plan(const Plan& plan) {
  CorePlan core;
  core.stages = plan.stages;
  core.jobs.reserve(plan.jobs.size());
  std::map<KindVersion, std::uint16_t> kinds;
  for (const PlannedJob& planned : plan.jobs) {
    const auto [kind, is_new] =
        kinds.try_emplace(KindVersion{planned.spec.kind, planned.spec.kind_version},
                          static_cast<std::uint16_t>(core.kinds.size()));
    if (is_new) core.kinds.push_back(kind->first);
    auto stage = std::find(core.stages.begin(), core.stages.end(), planned.stage);
    if (stage == core.stages.end()) stage = core.stages.insert(stage, planned.stage);
    core.jobs.push_back(
        CoreJob{.key = planned.key,
                .affinity = planned.affinity,
                .first_dependency = static_cast<std::uint32_t>(core.dependencies.size()),
                .dependency_count = static_cast<std::uint32_t>(planned.dependencies.size()),
                .kind = kind->second,
                .stage = static_cast<std::uint16_t>(stage - core.stages.begin())});
    core.dependencies.insert(core.dependencies.end(), planned.dependencies.begin(),
                             planned.dependencies.end());
  }
  return core;
}

}  // namespace prefgrid
