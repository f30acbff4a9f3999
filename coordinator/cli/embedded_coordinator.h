// A coordinator inside this process, with a thread of its own: `run`, and verbs that change a store
// which nobody holds.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "common/result.h"
#include "coordinator/loop/coordinator.h"

namespace prefgrid {

class EmbeddedCoordinator {
 public:
  static Result<std::unique_ptr<EmbeddedCoordinator>> start(const std::filesystem::path& store);
  ~EmbeddedCoordinator();  // stops it and waits
  EmbeddedCoordinator(const EmbeddedCoordinator&) = delete;
  EmbeddedCoordinator& operator=(const EmbeddedCoordinator&) = delete;

  Coordinator& coordinator() { return *coordinator_; }
  const std::string& endpoint() const { return coordinator_->control_endpoints().front(); }

 private:
  explicit EmbeddedCoordinator(std::unique_ptr<Coordinator> coordinator);
  std::unique_ptr<Coordinator> coordinator_;
  std::thread thread_;
};

}  // namespace prefgrid
