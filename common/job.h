// What a job is and what it leaves behind. A job is a pure function:
// (kind, kind version, parameters, inputs, seed) -> result + artefacts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "common/value.h"

namespace prefgrid {

// An input is another job's output (all its artefacts, as a folder) or one outside file.
using InputRef = std::variant<JobKey, ArtifactDigest>;

struct JobSpec {
  std::string kind;  // "pretrain", "train.lore", "policy_accuracy", ...; see experiments/catalog
  std::uint32_t kind_version = 1;
  ValueMap parameters;  // a field equal to its default is left out
  std::map<std::string, InputRef> inputs;
  std::optional<std::uint64_t> seed;  // only where the kind reads one
};

// SHA-256 of the canonical encoding (common/canonical.h). Refuses NaN and infinite parameters.
Result<JobKey> job_key(const JobSpec& spec);

// A file that a job made. Small ones (<= limits::inline_artifact_bytes) travel inside the result.
struct ArtifactRef {
  std::string name;  // a relative path, e.g. "model.safetensors"
  ArtifactDigest digest;
  std::uint64_t size = 0;                  // bytes
  std::optional<std::string> inline_data;  // the content itself, if it travels here
};

// One user's partial statistic: tables are views over these. mean = sum / count.
struct Metric {
  std::string name;              // "rm_accuracy", "rouge1", ...
  std::optional<double> weight;  // the guidance weight w, where the metric depends on it
  double sum = 0;
  std::uint64_t count = 0;
  std::uint64_t missing = 0;  // items that could not be evaluated, e.g. a non-finite value
};

struct CurvePoint {
  std::uint64_t step = 0;
  std::string series;  // "train_loss_nats", "valid_loss_nats"
  double value = 0;
};

// Everything that decides the last bits of a number. Byte-identity is promised within one profile.
struct NumericsProfile {
  std::string device;          // "cpu", "cuda:NVIDIA H200"
  std::string library;         // "libtorch 1.13.1"
  std::string blas_kernel;     // "OpenBLAS 0.3.21 SkylakeX"
  std::string cpu_capability;  // "avx512"
  std::uint32_t threads = 1;   // per executor
  std::string dtype;           // "fp32"

  auto operator<=>(const NumericsProfile&) const = default;
};

struct JobResult {
  std::vector<Metric> metrics;
  std::vector<CurvePoint> curve;
  std::vector<ArtifactRef> artifacts;
  NumericsProfile profile;
  std::uint64_t duration_ms = 0;  // wall clock in the executor; never in a table
};

enum class FailureClass : std::uint8_t {
  error,          // the job said so
  out_of_memory,  // an allocation failed, or the kernel killed it for memory
  crash,          // a signal
  lost_worker,    // the lease ran out without a word
  time_limit,
  preempted,  // never charged
  no_space    // the executor found its disk full; the agent settles it and never sends it on
};

struct JobFailure {
  FailureClass failure_class = FailureClass::error;
  std::string message;   // one line: what, where, what to do
  int signal = 0;        // for crash
  std::string log_tail;  // at most limits::log_tail_bytes
};

const char* to_string(FailureClass failure_class);

}  // namespace prefgrid
