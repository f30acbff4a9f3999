// The worker that `prefgrid run` starts: one agent with its executors, as a child that cannot
// outlive this process (a pipe that closes with it), started again if it is killed.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "common/result.h"

namespace prefgrid {

struct LocalWorkerOptions {
  std::filesystem::path program;  // prefgrid-worker
  std::string endpoint;           // of the coordinator
  std::string name = "local";
  unsigned executors = 1;
  std::filesystem::path cache;  // for artefacts
  std::filesystem::path log;    // its standard error goes there
};

// prefgrid-worker and prefgrid-executor beside this program; an error names the missing one.
Result<std::filesystem::path> find_worker_program();

class LocalWorker {
 public:
  struct Events {
    std::function<void(const std::string& reason)> gone;    // it was killed and is started again
    std::function<void(const std::string& reason)> failed;  // it does not start: no use to go on
  };

  static Result<std::unique_ptr<LocalWorker>> start(LocalWorkerOptions options, Events events);
  ~LocalWorker();  // it is told to go, and waited for
  LocalWorker(const LocalWorker&) = delete;
  LocalWorker& operator=(const LocalWorker&) = delete;

 private:
  struct Impl;
  explicit LocalWorker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace prefgrid
