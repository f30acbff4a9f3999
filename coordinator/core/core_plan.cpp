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
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
    const auto [kind, is_new] =
        kinds.try_emplace(KindVersion{plan.jobs.kind(i), plan.jobs.kind_version(i)},
                          static_cast<std::uint16_t>(core.kinds.size()));
    if (is_new) core.kinds.push_back(kind->first);
    auto stage = std::find(core.stages.begin(), core.stages.end(), plan.jobs.stage(i));
    if (stage == core.stages.end()) stage = core.stages.insert(stage, plan.jobs.stage(i));
    const auto dependencies = plan.jobs.dependencies(i);
    core.jobs.push_back(
        CoreJob{.key = plan.jobs.key(i),
                .affinity = plan.jobs.affinity(i),
                .first_dependency = static_cast<std::uint32_t>(core.dependencies.size()),
                .dependency_count = static_cast<std::uint32_t>(dependencies.size()),
                .kind = kind->second,
                .stage = static_cast<std::uint16_t>(stage - core.stages.begin())});
    core.dependencies.insert(core.dependencies.end(), dependencies.begin(), dependencies.end());
  }
  return core;
}

}  // namespace prefgrid
