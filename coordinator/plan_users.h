// Which users of a dataset an experiment can serve, and why not the others. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "coordinator/spec.h"
#include "experiments/catalog/catalog.h"
#include "experiments/datasets/dataset.h"

namespace prefgrid {

struct UsableUsers {
  std::vector<UserSummary> users;
  std::vector<std::string> notes;  // "user X is left out: ..."
};

// Errors: a user with too few items (unless evaluation.skip_small_users), naming what the user has
// and what is needed; no user is left; nobody to train shared parameters on.
Result<UsableUsers> usable_users(const ExperimentSpec& spec, const DatasetSummary& dataset,
                                 const Catalog& catalog);

}  // namespace prefgrid
