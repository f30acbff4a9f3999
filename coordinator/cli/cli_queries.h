// Questions that only the command line asks, beside the coordinator's own (coordinator/loop):
// "results", "jobs" and "standings"; docs/protocol.md has their arguments and answers.
#pragma once

#include <string>

#include "coordinator/loop/queries.h"

namespace prefgrid {

QueryTable cli_queries();

// What people call a core's state ("quarantined" is "failed"): the words of `status`.
std::string shown_state(const std::string& core_state);

}  // namespace prefgrid
