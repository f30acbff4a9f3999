#include "worker/executor/run_job.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>

#include "common/text.h"
#include "worker/executor/jobs/job_table.h"

namespace prefgrid {
namespace {

Error out_of_memory(const JobSpec& spec) {
  return {ErrorCode::out_of_memory, spec.kind +
                                        ": out of memory; use a smaller model, batch or k, or "
                                        "fewer executors on this machine"};
}

// torch says so in words only.
bool speaks_of_memory(std::string_view message) {
  return message.find("not enough memory") != std::string_view::npos ||
         message.find("out of memory") != std::string_view::npos ||
         message.find("can't allocate memory") != std::string_view::npos;
}

// The one place where torch's exceptions end.
Result<JobResult> call(const JobKind& kind, const JobEnvironment& job) {
  const JobSpec& spec = job.context().spec;
  try {
    return kind.run(job);
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    if (speaks_of_memory(message)) return out_of_memory(spec);
    return Error{ErrorCode::internal, spec.kind + ": " + message};
  } catch (const std::bad_alloc&) {
    return out_of_memory(spec);
  } catch (const std::exception& error) {
    return Error{ErrorCode::internal, spec.kind + ": " + error.what()};
  }
}

}  // namespace

JobRunner::JobRunner() : resident_(std::make_unique<ResidentModels>()) {}
JobRunner::~JobRunner() = default;

Result<JobResult> JobRunner::run(const JobContext& context) {
  const auto started = std::chrono::steady_clock::now();
  PREFGRID_TRY(check_spec(context.spec));
  const auto kinds = job_kinds();
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const JobKind& known) {
    return known.kind == context.spec.kind;
  });
  if (kind == kinds.end()) {
    return invalid_input("job kind " + quoted(context.spec.kind) + " is not in this executor");
  }
  const JobEnvironment job(context, *resident_);
  PREFGRID_ASSIGN(JobResult result, call(*kind, job));
  result.profile = numerics_profile();
  const auto took = std::chrono::steady_clock::now() - started;
  result.duration_ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
  return result;
}

}  // namespace prefgrid
