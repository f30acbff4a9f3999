// The log of a program: lines on stderr, by spdlog. Call set_up_log once, first in main; then any
// thread may use spdlog::info and its like.
#pragma once

#include <string>

#include "common/result.h"

namespace prefgrid {

// The level: $PREFGRID_LOG (trace, debug, info, warn, error, off) if set, else debug if verbose,
// else info. Never throws. A wrong PREFGRID_LOG is an error that names the levels; the log works
// then, too, at the level that `verbose` gives.
Result<void> set_up_log(const std::string& program, bool verbose);

}  // namespace prefgrid
