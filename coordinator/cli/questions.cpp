#include "coordinator/cli/questions.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include "common/base64.h"
#include "common/limits.h"
#include "coordinator/cli/cli_queries.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/loop/endpoints.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds silent_patience{1'000};
constexpr std::chrono::milliseconds patience{30'000};

// A socket that is not there will not come by waiting: libzmq would try for ever.
Result<void> check_socket(const std::string& endpoint) {
  if (!is_ipc(endpoint)) return {};
  const fs::path socket = endpoint.substr(std::string("ipc://").size());
  std::error_code ignored;
  if (fs::is_socket(socket, ignored)) return {};
  return Error{ErrorCode::not_found,
               "no coordinator listens at " + endpoint +
                   (fs::exists(socket, ignored) ? ": that is no socket" : ": no such socket")};
}

}  // namespace

void add_target_options(CLI::App& command, Target& target) {
  auto* store = command.add_option("--store", target.store, "The store's folder");
  command.add_option("--connect", target.connect, "A coordinator's endpoint, e.g. tcp://host:7600")
      ->excludes(store);
}

Result<fs::path> store_folder(const Target& target, const std::string& experiment) {
  if (!target.store.empty()) return fs::path(target.store);
  if (!experiment.empty()) return fs::path("runs") / experiment;
  return invalid_input(
      "say where to look: --store DIR or --connect ENDPOINT, or name an "
      "experiment (its store is then runs/NAME)");
}

Result<Client> connect_to(const std::string& endpoint) {
  PREFGRID_TRY(check_socket(endpoint));
  PREFGRID_ASSIGN(Client client, Client::connect(endpoint));
  auto answered = client.request("ping", {}, silent_patience);
  if (!answered && answered.error().code == ErrorCode::unavailable) {
    std::fprintf(stderr, "prefgrid: waiting for the coordinator at %s (up to %lld s)\n",
                 endpoint.c_str(), static_cast<long long>(patience.count() / 1'000));
    answered = client.request("ping", {}, patience - silent_patience);
  }
  if (answered) return client;
  if (answered.error().code != ErrorCode::unavailable) return answered.error();
  return Error{ErrorCode::unavailable, "no coordinator has answered at " + endpoint + " for " +
                                           std::to_string(patience.count() / 1'000) +
                                           " s: is it running, and is that its address?"};
}

Result<Questions> Questions::open(const Target& target, const std::string& experiment,
                                  Access access) {
  Questions questions;
  if (!target.connect.empty()) {
    PREFGRID_ASSIGN(questions.client_, connect_to(target.connect));
    return questions;
  }
  PREFGRID_ASSIGN(const fs::path folder, store_folder(target, experiment));
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return Error{ErrorCode::not_found,
                 "no store at " + folder.string() + " (--store DIR says where it is)"};
  }
  auto live = Client::connect_store(folder);
  if (live.ok()) {
    questions.client_ = *std::move(live);
    return questions;
  }
  if (live.error().code != ErrorCode::not_found) return live.error();
  if (access == Access::read) {
    PREFGRID_ASSIGN(questions.offline_, OfflineViews::open(folder, catalog_planner()));
    return questions;
  }
  if (!fs::exists(folder / "db", ignored)) {  // it would be made
    return Error{ErrorCode::not_found, "there is no store in " + folder.string()};
  }
  PREFGRID_ASSIGN(questions.embedded_, EmbeddedCoordinator::start(folder));
  PREFGRID_ASSIGN(questions.client_, Client::connect(questions.embedded_->endpoint()));
  return questions;
}

Result<Value> Questions::ask(const std::string& verb, const ValueMap& arguments) {
  if (client_) return client_->request(verb, arguments);
  return answer(cli_queries(), verb, arguments, offline_->views());
}

Result<std::string> Questions::artifact(const std::string& job, const std::string& name) {
  PREFGRID_ASSIGN(const Value answer, ask("artifact", {{"job", job}, {"name", name}}));
  if (answer.map().contains("content_base64")) {
    auto content = from_base64(text_field(answer, "content_base64"));
    if (!content) return Error{ErrorCode::internal, "the answer's content is not base64"};
    return *std::move(content);
  }
  const auto digest = ArtifactDigest::from_hex(text_field(answer, "digest"));
  if (!digest) return Error{ErrorCode::internal, "the answer names no digest"};
  if (client_) return client_->get_artifact(*digest, limits::shown_artifact_bytes);
  return offline_->views().store.artifact(*digest, limits::shown_artifact_bytes);
}

}  // namespace prefgrid
