#include "coordinator/cli/questions.h"

#include <filesystem>
#include <utility>

#include "common/limits.h"
#include "coordinator/report/aggregate.h"

namespace prefgrid {
namespace {

Result<Value> results(const ValueMap& arguments, const Views& views) {
  PREFGRID_ASSIGN(const BookedExperiment* experiment, wanted_experiment(arguments, views));
  if (!experiment->plan) {
    return Error{ErrorCode::conflict,
                 "experiment " + experiment->record.name +
                     " cannot be expanded by this version: " + experiment->problem};
  }
  const std::string dataset = [&] {
    const auto summary = summary_from_value(experiment->record.dataset);
    return summary.ok() ? summary->name : std::string();
  }();
  const ResultTable table = aggregate(*experiment->plan, dataset,
                                      {[&](const JobKey& key) { return result_of(views, key); },
                                       [&](const JobKey& key) { return why_missing(views, key); }});
  return Value(ValueMap{{"table", to_value(table)}, {"spec_text", experiment->record.spec_text}});
}

}  // namespace

void add_target_options(CLI::App& command, Target& target) {
  auto* store = command.add_option("--store", target.store, "The store's folder");
  command.add_option("--connect", target.connect, "A coordinator's endpoint, e.g. tcp://host:7600")
      ->excludes(store);
}

QueryTable cli_queries() {
  QueryTable table = standard_queries();
  table.emplace("results", results);
  return table;
}

Result<Questions> Questions::open(const Target& target, const std::string& experiment) {
  Questions questions;
  if (!target.connect.empty()) {
    PREFGRID_ASSIGN(questions.client_, Client::connect(target.connect));
    return questions;
  }
  std::filesystem::path folder = target.store;
  if (folder.empty()) {
    if (experiment.empty()) {
      return invalid_input("say where to look: --store DIR or --connect ENDPOINT");
    }
    folder = std::filesystem::path("runs") / experiment;
  }
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return Error{ErrorCode::not_found, "no store at " + folder.string()};
  }
  auto live = Client::connect_store(folder);
  if (live.ok()) {
    questions.client_ = *std::move(live);
    return questions;
  }
  if (live.error().code != ErrorCode::not_found) return live.error();
  PREFGRID_ASSIGN(questions.offline_, OfflineViews::open(folder, catalog_planner()));
  return questions;
}

Result<Value> Questions::ask(const std::string& verb, const ValueMap& arguments) {
  if (client_) return client_->request(verb, arguments);
  return answer(cli_queries(), verb, arguments, offline_->views());
}

Result<std::string> Questions::artifact(const ArtifactDigest& digest) {
  if (client_) return client_->get_artifact(digest, limits::shown_artifact_bytes);
  return offline_->views().store.artifact(digest, limits::shown_artifact_bytes);
}

}  // namespace prefgrid
