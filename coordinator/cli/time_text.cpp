#include "coordinator/cli/time_text.h"

#include <fmt/format.h>

#include <array>
#include <ctime>

namespace prefgrid {

std::string time_text(std::int64_t wall_ms) {
  const auto seconds = static_cast<std::time_t>(wall_ms / 1'000);
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return std::to_string(wall_ms) + " ms";
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

std::string duration_text(std::int64_t duration_ms) {
  constexpr std::int64_t minute = 60'000, hour = 60 * minute;
  if (duration_ms < 1'000) return fmt::format("{} ms", duration_ms);
  if (duration_ms < minute) return fmt::format("{:.1f} s", static_cast<double>(duration_ms) / 1e3);
  if (duration_ms < hour) {
    return fmt::format("{} min {} s", duration_ms / minute, duration_ms % minute / 1'000);
  }
  return fmt::format("{} h {} min", duration_ms / hour, duration_ms % hour / minute);
}

}  // namespace prefgrid
