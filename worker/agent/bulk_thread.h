// The thread of the bulk endpoint: it owns a FileService and a socket, and speaks to the loop by
// messages only, so that no transfer and no digest delays a heartbeat.
#pragma once

#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "common/transport.h"
#include "worker/agent/file_service.h"
#include "worker/agent/mailbox.h"
#include "worker/agent/session.h"

namespace prefgrid {

// A welcome's bulk endpoint as this agent can reach it: an empty or wildcard host ("tcp://:5557",
// "tcp://*:5557", "tcp://0.0.0.0:5557", "tcp://[::]:5557") is that of the control endpoint.
std::string reachable_endpoint(const std::string& control, const std::string& bulk);

class BulkThread {
 public:
  using Command =
      std::variant<PrepareFiles, StoreFiles, JudgeFailure, ReleaseFiles, UseBulkEndpoint>;

  // The context must outlive this object.
  BulkThread(TransportContext& context, FileService service, std::string control_endpoint);
  ~BulkThread();  // stops at once; what is under way is given up

  void post(Command command) { commands_.post(std::move(command)); }
  std::vector<FileReport> take_reports() { return reports_.take_all(); }
  int descriptor() const { return reports_.descriptor(); }  // readable while reports wait

 private:
  struct Stop {};
  using Order = std::variant<Command, Stop>;

  void run();
  bool take_orders();  // false: stop
  void obey(Command command);
  void connect(const std::string& endpoint);

  TransportContext& context_;
  std::string control_endpoint_;
  Mailbox<Order> commands_;
  Mailbox<FileReport> reports_;

  // The thread's own.
  FileService service_;
  std::optional<DealerSocket> socket_;
  std::string endpoint_;

  std::thread thread_;
};

}  // namespace prefgrid
