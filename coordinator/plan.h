// The plan: every job of an experiment, in topological order, with its key and its place in the
// tables. Pure: the same spec and dataset summary give the same plan on every machine.
#pragma once

#include <string>
#include <vector>

#include "coordinator/planned_jobs.h"
#include "coordinator/spec.h"
#include "experiments/catalog/catalog.h"
#include "experiments/datasets/dataset.h"

namespace prefgrid {

struct Plan {
  std::string experiment;
  std::vector<std::string> stages;  // in order of execution
  PlannedJobs jobs;                 // a job stands after its dependencies; keys are unique
  std::vector<std::string> notes;   // for the person: users left out, cells that share a job
};

// Errors: what the catalog refuses (a decoder that the method does not allow, two vocabularies, a
// user with too few items), naming the spec's line.
Result<Plan> make_plan(const ExperimentSpec& spec, const DatasetSummary& dataset,
                       const ArtifactDigest& dataset_digest, const Catalog& catalog);

}  // namespace prefgrid
