#include "coordinator/loop/coordinator.h"

#include <memory>
#include <vector>

#include "coordinator/cli/cli_queries.h"
#include "coordinator/cli/signals.h"
#include "coordinator/cli/verb.h"

namespace prefgrid {
namespace {

struct ServeOptions {
  std::string store;
  std::vector<std::string> listen;
  std::string listen_bulk;
  bool trust_network = false;
};

int serve(const ServeOptions& options, Output& out) {
  CoordinatorOptions coordinator_options;
  coordinator_options.store = options.store;
  coordinator_options.trust_network = options.trust_network;
  coordinator_options.queries = cli_queries();
  for (const std::string& endpoint : options.listen) {
    coordinator_options.listen.push_back({endpoint, options.listen_bulk});
  }
  SignalWatch signals;  // before any thread starts
  auto coordinator = Coordinator::start(std::move(coordinator_options));
  if (!coordinator) return report_refusal(coordinator.error());
  for (const std::string& endpoint : (*coordinator)->control_endpoints()) {
    out.print("listening on " + endpoint + "\n");
  }
  signals.on_signal([&](int) { (*coordinator)->stop(); });
  const auto ran = (*coordinator)->run();
  signals.ignore();
  if (!ran) {
    report_error(ran.error());
    return exit_failed;
  }
  return exit_done;
}

}  // namespace

VerbAction define_coordinator(CLI::App& command) {
  auto options = std::make_shared<ServeOptions>();
  command.add_option("--store", options->store, "The store's folder; made if it is not there")
      ->required();
  command.add_option("--listen", options->listen,
                     "tcp://HOST:PORT for workers and clients of other machines; may be repeated. "
                     "Port 0 or *: any free one. Those on this machine use the store's own socket");
  command.add_option("--listen-bulk", options->listen_bulk,
                     "tcp://HOST:PORT for artefacts (default: the same host, any free port)");
  command.add_flag(
      "--trust-network", options->trust_network,
      "Listen on addresses that other machines reach: whoever reaches them may command "
      "this coordinator");
  return [options](Output& out) { return serve(*options, out); };
}

}  // namespace prefgrid
