// A folder with small data, a spec and the real programs, whose executor is the fake one: a whole
// run takes half a second.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {

// Two seen and two unseen users, twelve items each; grid.yaml expands to this many jobs.
inline constexpr int grid_jobs = 47;
std::string grid_spec();  // experiment "grid" on pairs.jsonl

std::string replaced(std::string text, const std::string& from, const std::string& to);
// The key that a line of `prefgrid jobs` starts with.
std::string key_in(const std::string& line);

class Sandbox {
 public:
  Sandbox();  // writes grid.yaml and pairs.jsonl

  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
  }
  std::string file(const std::string& name) const { return file_text(path() / name); }
  bool exists(const std::string& name) const { return std::filesystem::exists(path() / name); }

  // `prefgrid WORDS` in this folder; output and errors together.
  Finished prefgrid(const std::string& words) const;
  // A shell command in this folder, in which $P is prefgrid.
  Finished shell(const std::string& command) const;
  // A coordinator of the store DIR in this folder that has said where it listens.
  Process coordinator(const std::string& store, const std::string& options = "") const;
  std::filesystem::path program(const std::string& name) const;

 private:
  TempDir folder_;
};

// Jobs of that kind fail for good, in runs that start while this lives.
class FailingJobs {
 public:
  explicit FailingJobs(const std::string& kind);
  ~FailingJobs();
  FailingJobs(const FailingJobs&) = delete;
  FailingJobs& operator=(const FailingJobs&) = delete;
};

bool contains(const std::string& text, const std::string& words);
// How many lines.
long lines_of(const std::string& text);

}  // namespace prefgrid
