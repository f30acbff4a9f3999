#include "coordinator/cli/local_worker.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/files.h"

extern char** environ;

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

constexpr int most_restarts = 20;  // of a worker that is killed again and again
constexpr int lifeline_descriptor = 3;

Result<fs::path> program_beside(const char* name) {
  std::error_code problem;
  const fs::path self = fs::read_symlink("/proc/self/exe", problem);
  const fs::path program = self.parent_path() / name;
  if (::access(program.c_str(), X_OK) != 0) {
    return invalid_input("no " + std::string(name) + " beside " + self.string() +
                         ": build it (ops/build.sh), or use `prefgrid coordinator` with workers "
                         "elsewhere");
  }
  return program;
}

std::string ending(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return "ended with code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Result<fs::path> find_worker_program() {
  PREFGRID_TRY([]() -> Result<void> {
    PREFGRID_ASSIGN(const fs::path executor, program_beside("prefgrid-executor"));
    return {};
  }());
  return program_beside("prefgrid-worker");
}

struct LocalWorker::Impl {
  LocalWorkerOptions options;
  Events events;
  Descriptor lifeline_read;   // the child's end
  Descriptor lifeline_write;  // ours: it closes with this process, whatever ends it
  std::atomic<bool> stopping{false};
  std::mutex pid_mutex;
  pid_t pid = -1;
  std::thread thread;

  Result<void> spawn();
  void watch();
  std::vector<std::string> arguments() const {
    return {options.program.string(),
            "--connect",
            options.endpoint,
            "--executors",
            std::to_string(options.executors),
            "--name",
            options.name,
            "--cache",
            options.cache.string(),
            "--lifeline-fd",
            std::to_string(lifeline_descriptor)};
  }
};

Result<void> LocalWorker::Impl::spawn() {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, lifeline_read.get(), lifeline_descriptor);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, options.log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);  // we block signals, the child must not
  // A group of its own: Ctrl-C reaches this process alone, which then closes the life-line.
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = arguments();
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = -1;
  const int problem = ::posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (problem != 0) return os_error(problem, "cannot start " + options.program.string());
  const std::scoped_lock lock(pid_mutex);
  pid = child;
  return {};
}

void LocalWorker::Impl::watch() {
  for (int restarts = 0;; ++restarts) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (stopping) return;
    const std::string reason = "the local worker " + ending(status);
    if (!WIFSIGNALED(status) || restarts == most_restarts) {
      events.failed(reason + "; its log: " + options.log.string());
      return;
    }
    events.gone(reason);
    if (auto spawned = spawn(); !spawned) {
      events.failed(spawned.error().message);
      return;
    }
  }
}

LocalWorker::LocalWorker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<LocalWorker>> LocalWorker::start(LocalWorkerOptions options, Events events) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->events = std::move(events);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return os_error(errno, "cannot make a pipe");
  // Above the descriptor that the child gets: dup2 onto itself would leave it close-on-exec.
  impl->lifeline_read = Descriptor(::fcntl(ends[0], F_DUPFD_CLOEXEC, 10));
  ::close(ends[0]);
  impl->lifeline_write = Descriptor(ends[1]);
  PREFGRID_TRY(impl->spawn());
  impl->thread = std::thread([raw = impl.get()] { raw->watch(); });
  return std::unique_ptr<LocalWorker>(new LocalWorker(std::move(impl)));
}

LocalWorker::~LocalWorker() {
  impl_->stopping = true;
  impl_->lifeline_write.close();
  impl_->thread.join();
}

}  // namespace prefgrid
