// How long a failed job rests before its next attempt, by class. The budget of each class is
// CoreOptions::attempts_per_job; a pre-empted attempt is never charged.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/job.h"
#include "coordinator/core/core.h"

namespace prefgrid {

inline bool is_charged(FailureClass failure_class) {
  return failure_class != FailureClass::preempted;
}

// `failures`: charged ones of this class so far, this one included.
inline std::int64_t backoff_ms(FailureClass failure_class, std::uint32_t failures,
                               const CoreOptions& options) {
  std::int64_t first = options.backoff_ms;
  std::uint32_t doublings = failures == 0 ? 0 : failures - 1;
  if (failure_class == FailureClass::lost_worker) {
    if (doublings == 0) return 0;  // most often the machine's fault: another one takes it at once
    --doublings;
  }
  if (failure_class == FailureClass::out_of_memory) first *= 5;  // others' memory may come free
  return std::min(first << std::min(doublings, 20u), options.backoff_limit_ms);
}

}  // namespace prefgrid
