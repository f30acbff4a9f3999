// The bulk endpoint: artefacts in and out, in chunks, on a thread and sockets of its own, so that
// a 10 GiB upload does not delay a heartbeat. The loop hears "artefact DIGEST complete" only.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/ids.h"
#include "common/transport.h"
#include "coordinator/loop/mailbox.h"
#include "coordinator/loop/uploads.h"
#include "coordinator/store/store.h"

namespace prefgrid {

class BulkServer {
 public:
  // Binds at once, so that an endpoint in use is an error here; serves from start() on. `complete`
  // is called on the server's thread whenever an artefact is durable. The store outlives this.
  static Result<std::unique_ptr<BulkServer>> bind(
      TransportContext& context, const std::vector<std::string>& endpoints, Store& store,
      std::function<void(const ArtifactDigest&)> complete);
  ~BulkServer();  // stops and joins
  BulkServer(const BulkServer&) = delete;
  BulkServer& operator=(const BulkServer&) = delete;

  void start();
  // As bound, in the order given.
  const std::vector<std::string>& endpoints() const { return endpoints_; }

 private:
  BulkServer(Store& store, std::function<void(const ArtifactDigest&)> complete);
  void serve();
  bool drain(RouterSocket& socket);
  void answer(RouterSocket& socket, const ReceivedFrame& received);
  void send_chunks(RouterSocket& socket, const PeerId& peer, const BulkGet& wanted);

  Store& store_;
  std::function<void(const ArtifactDigest&)> complete_;
  std::vector<RouterSocket> sockets_;  // the thread's, once it runs
  std::vector<std::string> endpoints_;
  Uploads uploads_;
  WakeUp wake_up_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace prefgrid
