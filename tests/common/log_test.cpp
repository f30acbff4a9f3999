#include "common/log.h"

#include <doctest/doctest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace prefgrid {

TEST_CASE("PREFGRID_LOG sets the level, and a wrong one says which there are") {
  ::unsetenv("PREFGRID_LOG");
  CHECK(set_up_log("test", false).ok());
  CHECK(spdlog::get_level() == spdlog::level::info);
  CHECK(set_up_log("test", true).ok());
  CHECK(spdlog::get_level() == spdlog::level::debug);
  ::setenv("PREFGRID_LOG", "warn", 1);
  CHECK(set_up_log("test", true).ok());
  CHECK(spdlog::get_level() == spdlog::level::warn);
  ::setenv("PREFGRID_LOG", "loud", 1);
  const auto refused = set_up_log("test", false);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message ==
        "PREFGRID_LOG is \"loud\": use trace, debug, info, warn, error or off");
  CHECK(spdlog::get_level() == spdlog::level::info);
  ::unsetenv("PREFGRID_LOG");
}

}  // namespace prefgrid
