// Where a verb's questions go: to the coordinator that holds the store, or to the store itself.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "common/result.h"
#include "coordinator/cli/embedded_coordinator.h"
#include "coordinator/loop/client.h"
#include "coordinator/loop/queries.h"

namespace prefgrid {

// The options that verbs which ask share.
struct Target {
  std::string store;    // a folder
  std::string connect;  // a coordinator's endpoint
};
void add_target_options(CLI::App& command, Target& target);
inline constexpr const char* key_help =
    "The job's key, or the first digits of it (at least 4); `prefgrid jobs` lists them";

// --store, else runs/NAME. An error where neither is given.
Result<std::filesystem::path> store_folder(const Target& target, const std::string& experiment);

// A client whose coordinator has answered. Says on stderr whom it waits for, if that takes longer
// than a second; gives up (unavailable) after half a minute.
Result<Client> connect_to(const std::string& endpoint);

enum class Access {
  read,   // nothing is written
  change  // where no coordinator runs, one is started for the time of the verb
};

class Questions {
 public:
  // --connect, else the store: its live holder, or the store opened here.
  static Result<Questions> open(const Target& target, const std::string& experiment = "",
                                Access access = Access::read);
  Result<Value> ask(const std::string& verb, const ValueMap& arguments);
  // The content of one of the files that a job made. Refuses more than
  // limits::shown_artifact_bytes.
  Result<std::string> artifact(const std::string& job, const std::string& name);
  // Whether workers may be there to run what is asked for.
  bool live() const { return client_.has_value() && !embedded_; }

 private:
  Questions() = default;
  std::unique_ptr<OfflineViews> offline_;
  std::unique_ptr<EmbeddedCoordinator> embedded_;
  std::optional<Client> client_;
};

}  // namespace prefgrid
