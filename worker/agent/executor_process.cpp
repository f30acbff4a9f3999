#include "worker/agent/executor_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <string_view>
#include <utility>

#include "common/check.h"
#include "worker/agent/agent_limits.h"

namespace prefgrid {
namespace {

constexpr int executor_descriptor = 3;

struct FileActions {
  posix_spawn_file_actions_t actions;
  FileActions() { ::posix_spawn_file_actions_init(&actions); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
};

struct Attributes {
  posix_spawnattr_t attributes;
  Attributes() { ::posix_spawnattr_init(&attributes); }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// A descriptor that the file actions cannot overwrite: above 0 … 3.
Result<Descriptor> lifted(Descriptor descriptor) {
  if (descriptor.get() > executor_descriptor) return descriptor;
  Descriptor high(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, executor_descriptor + 1));
  if (!high) return os_error(errno, "cannot duplicate a descriptor");
  return high;
}

// The agent blocks SIGTERM and SIGINT (it reads them from a descriptor) and ignores SIGPIPE: a
// child starts without any of that.
void set_signals(Attributes& spawn) {
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&spawn.attributes, &none);
  ::posix_spawnattr_setsigdefault(&spawn.attributes, &all);
  ::posix_spawnattr_setpgroup(&spawn.attributes, 0);
  ::posix_spawnattr_setflags(
      &spawn.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

}  // namespace

std::vector<std::string> executor_environment(const std::vector<std::string>& base,
                                              unsigned threads, bool avx512) {
  std::map<std::string, std::string> pinned;
  const std::string count = std::to_string(threads);
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    pinned[name] = count;
  }
  pinned["OMP_WAIT_POLICY"] = "passive";
  const auto is_capability = [](const std::string& entry) {
    return entry.starts_with("ATEN_CPU_CAPABILITY=");
  };
  if (avx512 && std::none_of(base.begin(), base.end(), is_capability)) {
    pinned["ATEN_CPU_CAPABILITY"] = "avx512";
  }
  std::vector<std::string> result;
  for (const std::string& entry : base) {
    if (!pinned.contains(entry.substr(0, entry.find('=')))) result.push_back(entry);
  }
  for (const auto& [name, value] : pinned) {
    std::string entry = name;
    entry += '=';
    entry += value;
    result.push_back(std::move(entry));
  }
  return result;
}

bool cpu_has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

std::vector<std::string> current_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    result.emplace_back(*entry);
  }
  return result;
}

Result<ExecutorProcess> ExecutorProcess::spawn(const ExecutorLaunch& launch) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return os_error(errno, "cannot make a socket pair for an executor");
  }
  ExecutorProcess process;
  process.socket_ = Descriptor(pair[0]);
  PREFGRID_ASSIGN(const Descriptor their_socket, lifted(Descriptor(pair[1])));
  const timeval patience{limits::executor_write_ms / 1'000, 0};
  ::setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);

  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return os_error(errno, "cannot make a pipe for an executor's log");
  }
  process.log_ = Descriptor(pipe[0]);
  PREFGRID_ASSIGN(const Descriptor their_log, lifted(Descriptor(pipe[1])));
  ::fcntl(process.log_.get(), F_SETFL, O_NONBLOCK);

  FileActions files;
  ::posix_spawn_file_actions_addopen(&files.actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files.actions, their_log.get(), 1);
  ::posix_spawn_file_actions_adddup2(&files.actions, their_log.get(), 2);
  ::posix_spawn_file_actions_adddup2(&files.actions, their_socket.get(), executor_descriptor);
  Attributes spawn;
  set_signals(spawn);

  std::vector<std::string> arguments{launch.program.string()};
  arguments.insert(arguments.end(), launch.arguments.begin(), launch.arguments.end());
  std::vector<std::string> environment = launch.environment;
  const int outcome =
      ::posix_spawn(&process.pid_, launch.program.c_str(), &files.actions, &spawn.attributes,
                    pointers(arguments).data(), pointers(environment).data());
  if (outcome != 0) {
    process.pid_ = -1;
    return os_error(outcome, "cannot start the executor " + launch.program.string());
  }
  process.pidfd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process.pid_, 0)));
  if (!process.pidfd_) return os_error(errno, "cannot watch the executor (pidfd_open)");
  return process;
}

ExecutorProcess::ExecutorProcess(ExecutorProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reaped_(other.reaped_),
      socket_(std::move(other.socket_)),
      log_(std::move(other.log_)),
      pidfd_(std::move(other.pidfd_)) {}

ExecutorProcess::~ExecutorProcess() {
  if (pid_ < 0 || reaped_) return;
  kill();
  reap();
}

void ExecutorProcess::kill() {
  if (pid_ > 0 && !reaped_) ::kill(pid_, SIGKILL);  // unreaped: the number is still its own
}

ExecutorProcess::Ending ExecutorProcess::reap() {
  PREFGRID_CHECK(pid_ > 0 && !reaped_, "reap() of a process that is not there");
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  Ending ending;
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ending.exit_status = WEXITSTATUS(status);
  return ending;
}

}  // namespace prefgrid
