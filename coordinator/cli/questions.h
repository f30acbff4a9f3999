// Where a verb's questions go: to the coordinator that holds the store, or to the store itself.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "common/result.h"
#include "coordinator/loop/client.h"
#include "coordinator/loop/queries.h"

namespace prefgrid {

// The options that verbs which ask share.
struct Target {
  std::string store;    // a folder
  std::string connect;  // a coordinator's endpoint
};
void add_target_options(CLI::App& command, Target& target);

// standard_queries and "results", whose answer is {"table": result table, "spec_text"}.
QueryTable cli_queries();

class Questions {
 public:
  // --connect, else --store, else the folder runs/<experiment> if `experiment` is given.
  static Result<Questions> open(const Target& target, const std::string& experiment = "");
  Result<Value> ask(const std::string& verb, const ValueMap& arguments);
  // The content of an artefact. Refuses more than limits::shown_artifact_bytes.
  Result<std::string> artifact(const ArtifactDigest& digest);

 private:
  Questions() = default;
  std::optional<Client> client_;
  std::unique_ptr<OfflineViews> offline_;
};

}  // namespace prefgrid
