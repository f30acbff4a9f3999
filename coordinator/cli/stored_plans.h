// What a store knows already, asked of its coordinator or of itself: for `plan`.
#pragma once

#include <unordered_map>
#include <vector>

#include "common/ids.h"
#include "coordinator/cli/questions.h"
#include "coordinator/plan.h"
#include "coordinator/plan_diff.h"

namespace prefgrid {

struct StoredPlans {
  std::vector<Plan> plans;  // of every experiment that this version can expand
  std::unordered_map<JobKey, Standing> standings;  // jobs that are done or have failed for good

  Standing standing(const JobKey& key) const {
    const auto found = standings.find(key);
    return found == standings.end() ? Standing::to_run : found->second;
  }
};

// `plan`: the one in hand, whose jobs the store may know from experiments that it cannot expand.
Result<StoredPlans> ask_stored_plans(Questions& questions, const Plan& plan);

}  // namespace prefgrid
