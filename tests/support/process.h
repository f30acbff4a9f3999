// Runs the real programs from tests. Every process is reaped, and killed if its owner goes first.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

extern char** environ;

namespace prefgrid {

class Process {
 public:
  // Standard output and error go to `log` (one file, appended), or to nowhere.
  explicit Process(std::vector<std::string> argv, const std::filesystem::path& log = "/dev/null",
                   const std::filesystem::path& directory = {})
      : Process(std::move(argv), log, directory, -1) {}

  // Standard output comes through read_line(), standard error goes to nowhere.
  static Process piped(std::vector<std::string> argv, const std::filesystem::path& directory = {}) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
    Process process(std::move(argv), "/dev/null", directory, ends[1]);
    process.output_ = ends[0];
    ::close(ends[1]);
    return process;
  }

  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), output_(std::exchange(other.output_, -1)) {}
  Process& operator=(Process&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(output_, other.output_);
    return *this;
  }
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
    if (output_ >= 0) ::close(output_);
  }

  bool started() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  // The next line of a piped process, without its end; "" once it has closed its output.
  std::string read_line() const {
    std::string line;
    char c = 0;
    while (::read(output_, &c, 1) == 1 && c != '\n') line += c;
    return line;
  }
  // The exit status, or 128 + the signal; -1 if it never started.
  int wait() {
    if (pid_ <= 0) return -1;
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  Process(std::vector<std::string> argv, const std::filesystem::path& log,
          const std::filesystem::path& directory, int output) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (output >= 0) posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (!directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
    std::vector<char*> arguments;
    for (std::string& argument : argv) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    if (::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0) {
      pid_ = -1;
    }
    posix_spawn_file_actions_destroy(&actions);
  }

  pid_t pid_ = -1;
  int output_ = -1;
};

inline std::string file_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Finished {
  int status = -1;
  std::string output;  // standard output and error together
};

inline Finished run_process(const std::vector<std::string>& argv,
                            const std::filesystem::path& scratch,
                            const std::filesystem::path& directory = {}) {
  const std::filesystem::path log = scratch / "output.log";
  std::filesystem::remove(log);
  Process process(argv, log, directory);
  const int status = process.wait();
  return {status, file_text(log)};
}

}  // namespace prefgrid
