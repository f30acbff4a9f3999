// The answers' parts as Values. Pure functions.
#pragma once

#include <string>

#include "coordinator/loop/queries.h"

namespace prefgrid {

const char* event_name(const EventFact& event);
Value event_value(const StoredEvent& event);
Value workers_value(const Core& core);
Value counters_value(const Views& views);
Value profiles_value(const Core& core);
Value failures_value(const FailureCounts& failures);
Value progress_of_job_value(const Progress& progress);
Value result_value(const ResultFact& fact);
ValueMap job_spec_value(const PlannedJob& job);

}  // namespace prefgrid
