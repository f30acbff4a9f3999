#include "common/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "common/text.h"

namespace prefgrid {
namespace {

std::optional<spdlog::level::level_enum> level_named(std::string_view name) {
  static const std::map<std::string_view, spdlog::level::level_enum> levels = {
      {"trace", spdlog::level::trace}, {"debug", spdlog::level::debug},
      {"info", spdlog::level::info},   {"warn", spdlog::level::warn},
      {"error", spdlog::level::err},   {"off", spdlog::level::off}};
  const auto found = levels.find(name);
  if (found == levels.end()) return std::nullopt;
  return found->second;
}

}  // namespace

Result<void> set_up_log(const std::string& program, bool verbose) {
  auto level = verbose ? spdlog::level::debug : spdlog::level::info;
  Result<void> outcome;
  const char* wanted = std::getenv("PREFGRID_LOG");
  if (wanted != nullptr && *wanted != '\0') {
    if (const auto named = level_named(wanted)) {
      level = *named;
    } else {
      outcome = invalid_input("PREFGRID_LOG is " + quoted(wanted) +
                              ": use trace, debug, info, warn, error or off");
    }
  }
  try {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    auto logger = std::make_shared<spdlog::logger>(program, std::move(sink));
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %n %l: %v");
    logger->set_level(level);
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(logger));
  } catch (const std::exception& problem) {
    return Error{ErrorCode::internal, std::string("cannot set up the log: ") + problem.what()};
  }
  return outcome;
}

}  // namespace prefgrid
