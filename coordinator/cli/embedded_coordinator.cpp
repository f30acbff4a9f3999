#include "coordinator/cli/embedded_coordinator.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "coordinator/cli/cli_queries.h"

namespace prefgrid {

Result<std::unique_ptr<EmbeddedCoordinator>> EmbeddedCoordinator::start(
    const std::filesystem::path& store) {
  CoordinatorOptions options;
  options.store = store;
  options.queries = cli_queries();
  PREFGRID_ASSIGN(auto coordinator, Coordinator::start(std::move(options)));
  return std::unique_ptr<EmbeddedCoordinator>(new EmbeddedCoordinator(std::move(coordinator)));
}

EmbeddedCoordinator::EmbeddedCoordinator(std::unique_ptr<Coordinator> coordinator)
    : coordinator_(std::move(coordinator)), thread_([this] {
        if (auto ran = coordinator_->run(); !ran) spdlog::error("{}", ran.error().message);
      }) {}

EmbeddedCoordinator::~EmbeddedCoordinator() {
  coordinator_->stop();
  thread_.join();
}

}  // namespace prefgrid
