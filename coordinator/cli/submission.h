// Handing a prepared experiment to a coordinator.
#pragma once

#include "common/value.h"
#include "coordinator/cli/prepare.h"
#include "coordinator/loop/client.h"

namespace prefgrid {

struct Submission {
  std::int64_t experiment = 0;  // its id in the store
  bool is_new = false;          // false: the same spec and data were there already
  Value progress;
};

// Uploads the dataset, then submits. Asking twice is harmless.
Result<Submission> submit_experiment(Client& client, const PreparedExperiment& prepared,
                                     std::int32_t priority = 0);

}  // namespace prefgrid
