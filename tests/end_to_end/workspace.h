// A folder to run the real programs in, and the undisturbed run of smoke.yaml that other runs are
// compared with (made once per test program).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {

// True, saying so, where ops/fetch-xorg.sh has not been run: the data are not in the repository.
bool xorg_missing();

std::string program(const std::string& name);  // of this build

// experiments/specs/FILE with its data's path made absolute.
std::string shipped_spec(const std::string& file);
std::string smoke_spec();
std::string replaced(std::string text, const std::string& from, const std::string& to);

class Workspace {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
  }
  // `prefgrid arguments…` in this folder.
  Finished prefgrid(std::vector<std::string> arguments) const;
  std::string file(const std::string& name) const { return file_text(folder_.path() / name); }

 private:
  TempDir folder_;
};

// Where a piped coordinator listens for other machines: waits until it says so.
std::string tcp_endpoint(const Process& coordinator);

struct Baseline {
  std::string output;
  std::string csv;
  std::string html;
  double seconds = 0;
};
const Baseline& undisturbed_smoke();

// Jobs that were leased again after their result had been committed, by key. Reads the history.
std::vector<std::string> jobs_run_again(const std::filesystem::path& store);

}  // namespace prefgrid
