#include "worker/agent/job_folders.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/check.h"
#include "common/limits.h"
#include "common/text.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

std::string id_text(const InputRef& id) {
  return std::visit([](const auto& key) { return key.hex(); }, id);
}

Result<void> link_file(const fs::path& object, const fs::path& target) {
  std::error_code problem;
  fs::create_directories(target.parent_path(), problem);
  if (problem) return os_error(problem.value(), "cannot make " + target.parent_path().string());
  if (::link(object.c_str(), target.c_str()) == 0) return {};
  int number = errno;
  if (number == EPERM || number == EMLINK || number == EXDEV || number == ENOSYS) {
    if (::symlink(object.c_str(), target.c_str()) == 0) return {};
    if (errno == ENOSPC || errno == EDQUOT) number = errno;
  }
  return os_error(number, "cannot link " + object.string() + " to " + target.string());
}

// Folders of agents that are gone.
void remove_stale(const fs::path& agents) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(agents, ignored)) {
    const Descriptor lock(::open((entry.path() / "lock").c_str(), O_RDWR | O_CLOEXEC));
    if (!lock) continue;  // just being made, or not ours to judge
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

bool is_safe_artifact_name(const std::string& name) {
  if (name.empty() || name.size() > limits::name_bytes) return false;
  if (name.find('\0') != std::string::npos) return false;
  for (const std::string& part : split(name, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

Result<JobFolders> JobFolders::make(const fs::path& cache_folder) {
  const fs::path agents = cache_folder / "agents";
  remove_stale(agents);
  std::string name = (agents / (std::to_string(::getpid()) + "-XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) {
    return os_error(errno, "cannot make a folder in " + agents.string());
  }
  JobFolders folders;
  folders.folder_ = name;
  const fs::path lock = folders.folder_ / "lock";
  folders.lock_ = Descriptor(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!folders.lock_ || ::flock(folders.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return os_error(errno, "cannot lock " + lock.string());
  }
  std::error_code problem;
  fs::create_directories(folders.folder_ / "in", problem);
  if (!problem) fs::create_directories(folders.output_root(), problem);
  if (problem) return os_error(problem.value(), "cannot make folders in " + name);
  return folders;
}

JobFolders::JobFolders(JobFolders&& other) noexcept
    : folder_(std::exchange(other.folder_, {})),
      lock_(std::move(other.lock_)),
      users_(std::move(other.users_)) {}

JobFolders::~JobFolders() {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Result<LocalInput> JobFolders::acquire(const ResolvedInput& input,
                                       const std::vector<fs::path>& files) {
  PREFGRID_CHECK(files.size() == input.artifacts.size(), "a file for every artefact");
  const std::string id = id_text(input.id);
  const fs::path path = folder_ / "in" / id;
  LocalInput local{input.name, input.id, path.string()};
  if (users_[id] > 0) {
    users_[id] += 1;
    return local;
  }
  std::error_code problem;
  fs::remove_all(path, problem);
  const bool is_folder = std::holds_alternative<JobKey>(input.id);
  if (is_folder) fs::create_directories(path, problem);
  if (problem) return os_error(problem.value(), "cannot make " + path.string());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const fs::path target = is_folder ? path / input.artifacts[i].name : path;
    if (const auto linked = link_file(files[i], target); !linked) {
      fs::remove_all(path, problem);
      return linked.error();
    }
  }
  users_[id] = 1;
  return local;
}

void JobFolders::release(const InputRef& id) {
  const auto users = users_.find(id_text(id));
  PREFGRID_CHECK(users != users_.end() && users->second > 0, "release() without acquire()");
  if (--users->second > 0) return;
  std::error_code ignored;
  fs::remove_all(folder_ / "in" / users->first, ignored);
  users_.erase(users);
}

}  // namespace prefgrid
