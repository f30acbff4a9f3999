// What a store knows already, asked of its coordinator or of itself: for `plan`.
#pragma once

#include <set>
#include <vector>

#include "common/ids.h"
#include "coordinator/cli/questions.h"
#include "coordinator/plan.h"

namespace prefgrid {

struct StoredPlans {
  std::vector<Plan> plans;  // of every experiment that this version can expand
  std::set<JobKey> done;    // jobs with a committed result
};

Result<StoredPlans> ask_stored_plans(Questions& questions);

}  // namespace prefgrid
