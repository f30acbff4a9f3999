// One executor child process: a socket pair (its descriptor 3), a pipe from its stdout and stderr,
// and a pidfd. Spawned with exec, in a process group of its own (a Ctrl-C at the terminal is for
// the agent, which then ends its executors), with default signals and a pinned environment.
// Owned by the loop's thread; the destructor kills and reaps it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/files.h"
#include "common/result.h"

namespace prefgrid {

struct ExecutorLaunch {
  std::filesystem::path program;
  std::vector<std::string> arguments;    // after the program's name
  std::vector<std::string> environment;  // "NAME=value"; see executor_environment
};

// `base` ("NAME=value" each, as in environ) with the numerics profile pinned: what decides the
// bits of a result must not depend on who started the agent. Threads per executor, no spinning
// OpenMP, and ATen's AVX-512 kernels if the processor has them and nobody chose otherwise.
// OPENBLAS_CORETYPE stays as it is: where it is set, there is a reason.
std::vector<std::string> executor_environment(const std::vector<std::string>& base,
                                              unsigned threads, bool cpu_has_avx512);
bool cpu_has_avx512();
std::vector<std::string> current_environment();

class ExecutorProcess {
 public:
  struct Ending {
    int signal = 0;       // 0: it exited
    int exit_status = 0;  // if it exited
  };

  static Result<ExecutorProcess> spawn(const ExecutorLaunch& launch);
  ExecutorProcess(ExecutorProcess&& other) noexcept;
  ExecutorProcess& operator=(ExecutorProcess&&) = delete;
  ~ExecutorProcess();

  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }  // blocking, writes end after executor_write_ms
  int log() const { return log_.get(); }        // the reading end, non-blocking
  int pidfd() const { return pidfd_.get(); }    // readable once it has ended

  void kill();
  Ending reap();  // blocks until it has ended; call when pidfd is readable, or after kill()

 private:
  ExecutorProcess() = default;
  pid_t pid_ = -1;
  bool reaped_ = false;
  Descriptor socket_;
  Descriptor log_;
  Descriptor pidfd_;
};

}  // namespace prefgrid
