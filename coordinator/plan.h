// The plan: every job of an experiment, in topological order, with its key and its place in the
// tables. Pure: the same spec and dataset summary give the same plan on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/job.h"
#include "coordinator/spec.h"
#include "experiments/catalog/catalog.h"
#include "experiments/datasets/dataset.h"

namespace prefgrid {

// Where a job's numbers stand in the tables. Display only: never part of a JobKey.
struct CellLabel {
  std::string method;                 // "lore"; "pretrain" for a model's own losses
  std::string config;                 // "features_from=bow,rank=5": the fields that the spec sets
  std::string backbone;               // reward backbone's model name, "" where none
  std::string policy;                 // policy's model name, "" where none
  std::string decoding;               // "args", "" where none
  std::optional<double> weight;       // of the decoder, where it has one
  std::optional<std::uint64_t> seed;  // as listed in the spec
  std::string user;                   // "" for a job that serves all users
  std::string user_group;             // "seen", "unseen", ""
};

struct PlannedJob {
  JobSpec spec;
  JobKey key;
  std::string stage;                        // "pretrain", "embed", "train", "adapt", ...
  std::vector<std::uint32_t> dependencies;  // indices of earlier jobs of this plan
  std::uint64_t affinity = 0;               // equal: they profit from the same executor
  std::vector<CellLabel> cells;             // places in the tables that this job fills
};

struct Plan {
  std::string experiment;
  std::vector<std::string> stages;  // in order of execution
  std::vector<PlannedJob> jobs;     // a job stands after its dependencies; keys are unique
  std::vector<std::string> notes;   // for the person: users left out, cells that share a job
};

// Errors: what the catalog refuses (a decoder that the method does not allow, two vocabularies, a
// user with too few items), naming the spec's line.
Result<Plan> make_plan(const ExperimentSpec& spec, const DatasetSummary& dataset,
                       const ArtifactDigest& dataset_digest, const Catalog& catalog);

}  // namespace prefgrid
