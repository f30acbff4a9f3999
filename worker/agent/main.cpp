// prefgrid-worker: the agent on a node. See agent_loop.h.
#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "common/files.h"
#include "common/log.h"
#include "common/text.h"
#include "worker/agent/agent_loop.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string connect;
  unsigned executors = 0;  // 0: cores / threads
  unsigned threads = 1;
  std::string name;
  std::string cache;
  double cache_gib = static_cast<double>(limits::cache_bytes >> 30);
  std::string executor;
  int life_line = -1;
  bool verbose = false;
};

constexpr const char* exit_codes =
    "\nExit codes:\n"
    "  0  told to stop (SIGTERM, SIGINT), or the life-line closed\n"
    "  1  something unexpected\n"
    "  2  wrong arguments, or no executor program\n"
    "  3  the coordinator refused this worker (its name is taken, another version, ...)\n"
    "  4  the executors do not start\n"
    "\nA worker survives its coordinator: it computes on and joins again when it is back.\n";

void declare(CLI::App& app, Arguments& arguments) {
  app.add_option("--connect", arguments.connect,
                 "The coordinator's endpoint, e.g. tcp://host:5556 or ipc:///path")
      ->required();
  app.add_option("--executors", arguments.executors,
                 "Executor processes (default: cores / threads per executor)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--threads-per-executor", arguments.threads,
                 "Threads of each; part of the numerics profile (default: 1)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--name", arguments.name,
                 "This worker's name, unique among live ones (default: host-pid)");
  app.add_option("--cache", arguments.cache,
                 "Folder for artefacts, shared by the workers of a host (default: "
                 "$XDG_CACHE_HOME/prefgrid or ~/.cache/prefgrid)");
  app.add_option("--cache-gib", arguments.cache_gib,
                 "Size at which the least recently used artefacts go (default: 20)")
      ->check([](const std::string& text) {
        const double gib = std::strtod(text.c_str(), nullptr);
        return gib >= 0.01 && gib <= 1e6 ? "" : "give GiB, from 0.01 to 1000000";
      });
  app.add_option("--executor", arguments.executor,
                 "The executor program (default: prefgrid-executor beside this one)");
  app.add_option("--lifeline-fd", arguments.life_line,
                 "An inherited descriptor: when its other end closes, stop at once");
  app.add_flag("--verbose", arguments.verbose, "Log more");
  app.set_version_flag("--version", "prefgrid-worker " PREFGRID_VERSION);
  app.footer(exit_codes);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return name.data();
}

Result<fs::path> cache_folder(const Arguments& arguments) {
  if (!arguments.cache.empty()) return fs::path(arguments.cache);
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder && *folder != '\0') {
    return fs::path(folder) / "prefgrid";
  }
  if (const char* home = std::getenv("HOME"); home && *home != '\0') {
    return fs::path(home) / ".cache" / "prefgrid";
  }
  return invalid_input("no HOME in the environment: say where artefacts may lie with --cache");
}

Result<fs::path> executor_program(const Arguments& arguments) {
  std::error_code problem;
  fs::path program = arguments.executor;
  if (program.empty()) {
    program = fs::read_symlink("/proc/self/exe", problem).parent_path() / "prefgrid-executor";
  }
  if (!fs::is_regular_file(program, problem) || ::access(program.c_str(), X_OK) != 0) {
    return invalid_input("no executor program at " + program.string() +
                         ": build it, or name another with --executor");
  }
  return fs::absolute(program, problem);
}

// The executors' pipes must not land on 0, 1 or 2.
void open_standard_descriptors() {
  while (true) {
    const int descriptor = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return;
    if (descriptor <= 2) continue;
    ::close(descriptor);
    return;
  }
}

// From here on SIGTERM and SIGINT wait in a descriptor; before any thread starts.
Result<Descriptor> signal_descriptor() {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  Descriptor descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor) return os_error(errno, "cannot watch for signals");
  return descriptor;
}

Result<AgentOptions> agent_options(const Arguments& arguments) {
  AgentOptions options;
  options.control_endpoint = arguments.connect;
  options.host = host_name();
  options.name = arguments.name;
  if (options.name.empty()) options.name = options.host + "-" + std::to_string(::getpid());
  if (options.name.size() > limits::name_bytes || !valid_utf8(options.name)) {
    return invalid_input("--name " + quoted(options.name) + " is not UTF-8 of at most " +
                         std::to_string(limits::name_bytes) + " bytes");
  }
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  options.executors = arguments.executors;
  if (options.executors == 0) options.executors = std::max(1u, cores / arguments.threads);
  PREFGRID_ASSIGN(options.cache_folder, cache_folder(arguments));
  const double bytes = std::min(arguments.cache_gib, 1e6) * static_cast<double>(1 << 30);
  options.cache_bytes = static_cast<std::uint64_t>(bytes);
  PREFGRID_ASSIGN(options.launch.program, executor_program(arguments));
  options.launch.environment =
      executor_environment(current_environment(), arguments.threads, cpu_has_avx512());
  options.life_line_descriptor = arguments.life_line;
  if (arguments.life_line >= 0 && ::fcntl(arguments.life_line, F_SETFD, FD_CLOEXEC) != 0) {
    return invalid_input("--lifeline-fd " + std::to_string(arguments.life_line) +
                         " is not an open descriptor");
  }
  return options;
}

int run(const Arguments& arguments) {
  if (const auto log = set_up_log("prefgrid-worker", arguments.verbose); !log) {
    spdlog::warn("{}", log.error().message);
  }
  auto options = agent_options(arguments);
  if (!options) {
    std::fprintf(stderr, "prefgrid-worker: %s\n", options.error().message.c_str());
    return static_cast<int>(AgentExit::bad_arguments);
  }
  const auto signals = signal_descriptor();
  if (!signals) {
    std::fprintf(stderr, "prefgrid-worker: %s\n", signals.error().message.c_str());
    return static_cast<int>(AgentExit::failed);
  }
  options->signal_descriptor = signals->get();
  spdlog::info("{} executor{} of {} thread{} for the coordinator at {}; connecting as {}",
               options->executors, options->executors == 1 ? "" : "s", arguments.threads,
               arguments.threads == 1 ? "" : "s", options->control_endpoint, options->name);
  const ExitAgent exit = run_agent(*options);
  if (exit.code == AgentExit::asked) {
    spdlog::info("{}", exit.message);
  } else {
    std::fprintf(stderr, "prefgrid-worker: %s\n", exit.message.c_str());
  }
  return static_cast<int>(exit.code);
}

}  // namespace
}  // namespace prefgrid

int main(int argc, char** argv) {
  CLI::App app{"Runs jobs of a prefgrid coordinator on this machine."};
  prefgrid::Arguments arguments;
  prefgrid::declare(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "prefgrid-worker: %s; see `prefgrid-worker --help`\n", error.what());
    return static_cast<int>(prefgrid::AgentExit::bad_arguments);
  }
  prefgrid::open_standard_descriptors();
  try {
    return prefgrid::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "prefgrid-worker: %s\n", error.what());
    return static_cast<int>(prefgrid::AgentExit::failed);
  }
}
