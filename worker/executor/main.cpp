// prefgrid-executor: one process per device. Started by prefgrid-worker, it says what it can run,
// then runs one job after the other and keeps models loaded between them.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "experiments/catalog/catalog.h"
#include "worker/executor/ipc.h"
#include "worker/executor/run_job.h"

namespace prefgrid {
namespace {

constexpr int exit_bad_arguments = 2;
constexpr int exit_wrong_numbers = 5;

void set_up_process() {
  // Large tensors would be mapped and unmapped, and their pages faulted in, at every allocation.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
  const char* text = std::getenv("OMP_NUM_THREADS");  // pinned by the agent
  const int threads = text ? std::atoi(text) : 1;
  at::set_num_threads(threads > 0 ? threads : 1);
  at::set_num_interop_threads(1);
}

// Some BLAS builds compute wrong products on processors that are newer than they are. Small
// integers: every order of summation is exact in fp32, so the two ways must agree bit for bit.
bool products_are_right() {
  const at::Tensor left = at::arange(96 * 80).remainder(7).sub(3).reshape({96, 80});
  const at::Tensor right = at::arange(80 * 112).remainder(5).sub(2).reshape({80, 112});
  const at::Tensor product = at::matmul(left.to(at::kFloat), right.to(at::kFloat));
  const at::Tensor naive = left.unsqueeze(2).mul(right.unsqueeze(0)).sum(1);
  return at::equal(product, naive.to(at::kFloat));
}

Result<JobResult> run_one(JobRunner& runner, const RunJob& job, const ProgressReport& report) {
  PREFGRID_TRY(make_output_dir(job.output_dir));
  JobContext context{job.spec, {}, job.output_dir, report};
  for (const LocalInput& input : job.inputs) {
    const std::string id = std::visit([](const auto& key) { return key.hex(); }, input.id);
    context.inputs[input.name] = JobInput{id, input.path};
  }
  Result<JobResult> result = runner.run(context);
  drop_output_dir_if_empty(job.output_dir);
  return result;
}

int serve(ExecutorChannel& channel) {
  set_up_process();
  if (!products_are_right()) {
    std::fprintf(stderr,
                 "matrix products of this BLAS library are wrong on this processor; choose another "
                 "kernel with OPENBLAS_CORETYPE (Haswell works on every x86-64 since 2013)\n");
    return exit_wrong_numbers;
  }
  JobRunner runner;
  const ExecutorReady ready{catalog().kind_versions(), numerics_profile(), PREFGRID_VERSION};
  serve_jobs(channel, ready, [&runner](const RunJob& job, const ProgressReport& report) {
    return run_one(runner, job, report);
  });
  return 0;
}

}  // namespace
}  // namespace prefgrid

int main(int argc, char** argv) {
  CLI::App app{
      "Runs the jobs of a prefgrid worker. Started by prefgrid-worker, not by hand.\n"
      "Exit codes: 0 told to stop, 1 unexpected, 2 wrong arguments or started by hand,\n"
      "5 the BLAS library computes wrong numbers on this processor."};
  app.set_version_flag("--version", "prefgrid-executor " PREFGRID_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : prefgrid::exit_bad_arguments;
  }
  const auto channel = prefgrid::ExecutorChannel::open();
  if (!channel) {
    std::fprintf(stderr, "prefgrid-executor: %s\n", channel.error().message.c_str());
    return prefgrid::exit_bad_arguments;
  }
  try {
    const int status = prefgrid::serve(**channel);
    std::fflush(nullptr);
    std::_Exit(status);  // the channel's reader still waits: no destructors under its feet
  } catch (const std::exception& error) {
    std::fprintf(stderr, "prefgrid-executor: %s\n", error.what());
    std::_Exit(1);
  }
}
