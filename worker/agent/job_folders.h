// One agent's own folder in the cache, where its jobs find inputs and leave outputs:
//
//   agents/PID-XXXXXX/lock        held (flock) while the agent lives; a folder whose lock is free
//                                 belongs to a dead agent and is removed by the next one
//   agents/PID-XXXXXX/in/ID       a job's artefacts as a folder of hard links, or an outside file;
//                                 ID is the JobKey or digest, so the path is the same for all jobs
//   agents/PID-XXXXXX/out/…       output folders (session.h names them, executors make them)
//
// Hard links, so that nobody's eviction takes a file away under a running job; where the file
// system refuses them, symbolic ones. Single-threaded.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/files.h"
#include "common/messages.h"
#include "common/result.h"

namespace prefgrid {

// "model.safetensors", "tokens/a.bin": relative, no empty, "." or ".." part, no NUL, not too long.
bool is_safe_artifact_name(const std::string& name);

class JobFolders {
 public:
  static Result<JobFolders> make(const std::filesystem::path& cache_folder);
  JobFolders(JobFolders&& other) noexcept;
  JobFolders& operator=(JobFolders&&) = delete;
  ~JobFolders();  // removes the folder

  std::filesystem::path output_root() const { return folder_ / "out"; }

  // `files`: the cached object of each of input.artifacts, in their order. Use counts per id:
  // the first acquire makes the links, the last release removes them. not_found: an object has
  // been evicted meanwhile, fetch again.
  Result<LocalInput> acquire(const ResolvedInput& input,
                             const std::vector<std::filesystem::path>& files);
  void release(const InputRef& id);

 private:
  JobFolders() = default;
  std::filesystem::path folder_;
  Descriptor lock_;
  std::map<std::string, std::size_t> users_;  // by ID
};

}  // namespace prefgrid
