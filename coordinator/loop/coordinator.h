// The coordinator's loop: drain what has arrived, let the core react, write one synced batch, send.
// One thread (the caller of run) owns the core, the control sockets and the store's commits;
// artefacts have a thread of their own (bulk_server.h).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "coordinator/core/core.h"
#include "coordinator/loop/experiment_book.h"
#include "coordinator/loop/queries.h"
#include "coordinator/store/holder.h"

namespace prefgrid {

// Endpoints beside the ipc ones in the store's folder, which are always there.
struct ListenOn {
  std::string control;  // "tcp://127.0.0.1:7700"; port * or 0: any free one
  std::string bulk;     // "": the same host, any free port
};

struct CoordinatorOptions {
  std::filesystem::path store;
  std::vector<ListenOn> listen;
  // Without keys, everybody who reaches a tcp endpoint may command it: addresses that other
  // machines reach are refused unless this says that the network is trusted.
  bool trust_network = false;
  Planner planner = catalog_planner();
  QueryTable queries = standard_queries();
  CoreOptions core;
  HolderTimes holder;
};

class Coordinator {
 public:
  // Takes the store, restores the core, listens. Errors: the store is held, damaged or newer; the
  // disk is too full; an endpoint is in use.
  static Result<std::unique_ptr<Coordinator>> start(CoordinatorOptions options);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Until stop(). An error: the store failed for another reason than a full disk.
  Result<void> run();
  // From any thread or signal handler.
  void stop();
  // From any thread: the process of that worker has ended.
  void worker_gone(const std::string& name, const std::string& reason);

  // The ipc endpoint first, then those of options.listen, as bound.
  const std::vector<std::string>& control_endpoints() const;
  const std::vector<std::string>& bulk_endpoints() const;

 private:
  struct Impl;
  explicit Coordinator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace prefgrid
