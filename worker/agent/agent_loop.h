// The agent: one loop that owns the session, the control socket and the executors, and a bulk
// thread beside it. Everything that blocks is elsewhere: a job in its executor, a transfer in the
// bulk thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "worker/agent/executor_process.h"
#include "worker/agent/session.h"

namespace prefgrid {

struct AgentOptions {
  std::string control_endpoint;
  std::string name;
  std::string host;
  std::uint32_t executors = 1;
  ExecutorLaunch launch;
  std::filesystem::path cache_folder;
  std::uint64_t cache_bytes = limits::cache_bytes;
  int signal_descriptor = -1;  // a signalfd: readable = hand everything back and stop
  int life_line_descriptor =
      -1;  // -1: none; readable or closed = the coordinator is gone, stop now
};

// Runs until it is told to stop. No child and no file of a job is left when it returns.
ExitAgent run_agent(const AgentOptions& options);

}  // namespace prefgrid
