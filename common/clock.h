// Time as a value: the core and the sessions are told `now`, they never ask.
#pragma once

#include <chrono>
#include <cstdint>

namespace prefgrid {

// Milliseconds on a monotonic clock that only this process knows. Never compared across machines.
enum class MonotonicMs : std::int64_t {};
// Milliseconds since 1970 UTC, for people and history records only: no decision reads it.
enum class WallMs : std::int64_t {};

constexpr MonotonicMs operator+(MonotonicMs time, std::int64_t ms) {
  return MonotonicMs{static_cast<std::int64_t>(time) + ms};
}
constexpr std::int64_t operator-(MonotonicMs a, MonotonicMs b) {
  return static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b);
}

// For the loops only.
inline MonotonicMs monotonic_now() {
  using namespace std::chrono;
  return MonotonicMs{duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count()};
}
inline WallMs wall_now() {
  using namespace std::chrono;
  return WallMs{duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

}  // namespace prefgrid
