// Points and lengths of time for people.
#pragma once

#include <cstdint>
#include <string>

namespace prefgrid {

std::string time_text(std::int64_t wall_ms);  // "2026-01-31 12:30:05", UTC
std::string duration_text(
    std::int64_t duration_ms);  // "850 ms", "12.3 s", "4 min 5 s", "3 h 7 min"

}  // namespace prefgrid
