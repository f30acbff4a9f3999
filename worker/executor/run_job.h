// One job in, one result out: what the executor's main loop calls for each RunJob message.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/job.h"
#include "common/result.h"

namespace prefgrid {

struct JobInput {
  std::string id;              // hex of the JobKey or digest: equal ids are equal content
  std::filesystem::path path;  // a folder (another job's artefacts) or a file
};

struct JobContext {
  const JobSpec& spec;
  std::map<std::string, JobInput> inputs;
  std::filesystem::path output_dir;  // artefacts go here; it exists and is empty
  // Called at least once per training step: reports progress (step, total, loss in nats).
  std::function<void(std::uint64_t, std::uint64_t, std::optional<double>)> progress;
};

struct ResidentModels;  // models, features and candidate states kept between jobs

// Owns what stays loaded between jobs. One per process, single-threaded.
class JobRunner {
 public:
  JobRunner();
  ~JobRunner();

  // Metrics, curve, artefacts (name only: the caller digests the files) and duration. Errors are
  // the job's own failure; exceptions of torch end here. Out of memory: ErrorCode::out_of_memory.
  Result<JobResult> run(const JobContext& job);

 private:
  std::unique_ptr<ResidentModels> resident_;
};

// Device, library, kernel, threads of this process.
NumericsProfile numerics_profile();

}  // namespace prefgrid
