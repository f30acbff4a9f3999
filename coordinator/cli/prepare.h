// From a spec file to a plan: everything that can be refused is refused here, before anything is
// written or started.
#pragma once

#include <filesystem>
#include <string>

#include "common/ids.h"
#include "common/result.h"
#include "coordinator/plan.h"
#include "coordinator/spec.h"
#include "experiments/datasets/dataset.h"

namespace prefgrid {

struct PreparedExperiment {
  ExperimentSpec spec;
  std::string spec_text;  // as the person wrote it
  DatasetSummary dataset;
  std::string dataset_bytes;  // canonical JSON Lines
  ArtifactDigest dataset_digest;
  Plan plan;
};

// Reads and checks the spec, the dataset that it names, and the grid.
Result<PreparedExperiment> prepare(const std::filesystem::path& spec_file);

// The spec alone, and the dataset of its section: a relative path there starts at the folder of
// the spec file. Errors have their place in the spec.
Result<ExperimentSpec> read_spec(const std::filesystem::path& spec_file);
Result<LoadedDataset> read_dataset_of(const ExperimentSpec& spec,
                                      const std::filesystem::path& spec_file);

}  // namespace prefgrid
