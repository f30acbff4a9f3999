// prefgrid-fake-executor: speaks an executor's protocol without torch, for tests of everything
// around it (`prefgrid-worker --executor …/tests/prefgrid-fake-executor`). A job does what its
// script says: actions separated by ';', from the first of
//   1. its parameter "script",
//   2. PREFGRID_FAKE_SCRIPTS="KIND=SCRIPT|KIND=SCRIPT",
//   3. "default": the artefacts and metrics that docs/jobs.md names for its kind, with made-up
//      content and numbers that depend on the JobKey alone.
// Actions:
//   noop                   nothing
//   default                see above
//   print:TEXT             a line on stdout
//   log:BYTES              so many bytes on stdout, in lines, then "end of log"
//   artifact:NAME:BYTES    a file whose content depends on NAME alone
//   metric:NAME:SUM:COUNT
//   inputs                 a metric "input.NAME" for each input: sum = bytes, count = files
//   progress:STEPS         that many reports
//   fail:TEXT, throw:TEXT, oom, crash (SIGSEGV), kill (SIGKILL), exit:STATUS
//   hang                   waits for ever; spin: computes for ever
//   wait:FIFO              until a writer has opened and closed it
//   garbage                a frame that is no message; close: closes the channel and hangs
//   once:FILE:ACTION       ACTION (one without ';') if FILE is not there yet; makes it
// PREFGRID_FAKE_KINDS="KIND:VERSION,…": what it offers; default: the catalogue's and test:1.
// PREFGRID_FAKE_START="exit:N", "crash", "silent", "print:TEXT": what it does before it is ready.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/files.h"
#include "common/pipe_frames.h"
#include "common/random.h"
#include "common/text.h"
#include "experiments/catalog/catalog.h"
#include "worker/executor/ipc.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::uint64_t number(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);
}

[[noreturn]] void hang() {
  for (;;) ::pause();
}

[[noreturn]] void crash(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  hang();
}

void print_log(std::uint64_t bytes) {
  const std::string line(63, 'x');
  for (std::uint64_t written = 0; written + 64 <= bytes; written += 64) {
    std::printf("%s\n", line.c_str());
  }
  std::printf("end of log\n");
}

// Bytes that nobody's digest has seen before, the same for the same name.
std::string content_for(const std::string& name, std::uint64_t bytes) {
  std::string content;
  content.reserve(bytes);
  RandomStream stream(1, name);
  while (content.size() < bytes) {
    const std::uint64_t word = stream.bits();
    content.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  content.resize(bytes);
  return content;
}

class FakeJob {
 public:
  FakeJob(const RunJob& job, const ProgressReport& report) : job_(job), report_(report) {}

  Result<JobResult> run(const std::string& script) {
    for (const std::string& action : split(script, ';')) PREFGRID_TRY(act(action));
    return std::move(result_);
  }

 private:
  Result<void> act(const std::string& action);
  Result<void> end_badly(const std::string& name, const std::string& rest);
  Result<void> once(const std::string& rest);
  Result<void> write_artifact(const std::string& name, const std::string& content);
  Result<void> made_up();
  void made_up_metrics();
  void measure_inputs();
  double made_up_number(const std::string& name);

  const RunJob& job_;
  const ProgressReport& report_;
  JobResult result_;
  bool has_folder_ = false;
};

Result<void> FakeJob::act(const std::string& action) {
  const std::size_t colon = action.find(':');
  const std::string name = action.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : action.substr(colon + 1);
  const std::vector<std::string> words = split(rest, ':');
  if (name == "noop" || name.empty()) return {};
  if (name == "default") return made_up();
  if (name == "print") {
    std::printf("%s\n", rest.c_str());
  } else if (name == "log") {
    print_log(number(rest));
  } else if (name == "artifact" && words.size() == 2) {
    return write_artifact(words[0], content_for(words[0], number(words[1])));
  } else if (name == "metric" && words.size() == 3) {
    result_.metrics.push_back(
        {words[0], std::nullopt, std::atof(words[1].c_str()), number(words[2]), 0});
  } else if (name == "inputs") {
    measure_inputs();
  } else if (name == "progress") {
    for (std::uint64_t i = 1; i <= number(rest); ++i) report_(i, number(rest), 0.5);
  } else if (name == "wait") {
    std::ifstream fifo(rest);
    std::string text((std::istreambuf_iterator<char>(fifo)), {});
  } else if (name == "once") {
    return once(rest);
  } else {
    return end_badly(name, rest);
  }
  return {};
}

Result<void> FakeJob::end_badly(const std::string& name, const std::string& rest) {
  std::fflush(nullptr);
  if (name == "fail") return Error{ErrorCode::internal, rest};
  if (name == "throw") throw std::runtime_error(rest);
  if (name == "oom") throw std::bad_alloc();
  if (name == "crash") crash(SIGSEGV);
  if (name == "kill") crash(SIGKILL);
  if (name == "exit") std::_Exit(static_cast<int>(number(rest)));
  if (name == "hang") hang();
  if (name == "spin") {
    for (std::atomic<std::uint64_t> count = 0;; ++count) {
    }
  }
  if (name == "garbage") {
    (void)write_frame(executor_channel_descriptor, "no message at all");
    hang();
  }
  if (name == "close") {
    ::shutdown(executor_channel_descriptor, SHUT_WR);
    hang();
  }
  return invalid_input("the fake executor knows no action " + quoted(name));
}

Result<void> FakeJob::once(const std::string& rest) {
  const std::size_t colon = rest.find(':');
  const std::string file = rest.substr(0, colon);
  if (fs::exists(file)) return {};
  std::ofstream(file) << "done";
  return act(colon == std::string::npos ? "noop" : rest.substr(colon + 1));
}

Result<void> FakeJob::write_artifact(const std::string& name, const std::string& content) {
  if (!has_folder_) PREFGRID_TRY(make_output_dir(job_.output_dir));
  has_folder_ = true;
  const fs::path file = fs::path(job_.output_dir) / name;
  std::error_code problem;
  fs::create_directories(file.parent_path(), problem);
  std::ofstream(file, std::ios::binary) << content;
  ArtifactRef artifact;
  artifact.name = name;
  result_.artifacts.push_back(std::move(artifact));
  return {};
}

void FakeJob::measure_inputs() {
  for (const LocalInput& input : job_.inputs) {
    Metric metric{"input." + input.name, std::nullopt, 0, 0, 0};
    const auto measure = [&metric](const fs::path& file) {
      std::ifstream in(file, std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(in)), {});
      metric.sum += static_cast<double>(text.size());
      metric.count += 1;
    };
    if (!fs::is_directory(input.path)) {
      measure(input.path);
    } else {
      for (const auto& entry : fs::recursive_directory_iterator(input.path)) {
        if (entry.is_regular_file()) measure(entry.path());
      }
    }
    result_.metrics.push_back(metric);
  }
}

double FakeJob::made_up_number(const std::string& name) {
  const std::uint64_t bits = stable_hash(job_.lease.job.hex() + name);
  return static_cast<double>(bits >> 11) / static_cast<double>(1ull << 53);
}

Result<void> FakeJob::made_up() {
  const std::string& kind = job_.spec.kind;
  std::vector<std::pair<std::string, std::uint64_t>> files;
  if (kind == "pretrain" || kind == "train.global_bt") {
    files = {{"config.json", 200}, {"model.safetensors", 40'000}, {"tokenizer.json", 3'000}};
  }
  if (kind == "train.global_bt") files.emplace_back("head.safetensors", 600);
  if (kind == "train.lore") files.emplace_back("lore.safetensors", 5'000);
  if (kind == "adapt.lore") files.emplace_back("user.safetensors", 150);
  if (kind.starts_with("embed.")) files.emplace_back("features.safetensors", 60'000);
  if (kind.starts_with("generate.")) files.emplace_back("generations.jsonl", 4'000);
  for (const auto& [name, bytes] : files) {
    PREFGRID_TRY(write_artifact(name, content_for(job_.lease.job.hex() + name, bytes)));
  }
  made_up_metrics();
  report_(1, 1, std::nullopt);
  return {};
}

void FakeJob::made_up_metrics() {
  const std::string& kind = job_.spec.kind;
  std::vector<std::string> names;
  if (kind == "pretrain") names = {"valid_loss_nats", "test_loss_nats", "unigram_loss_nats"};
  if (kind.starts_with("train.")) names = {"valid_accuracy", "train_loss_nats"};
  if (kind.starts_with("adapt.")) names = {"train_loss_nats"};
  if (kind == "rm_accuracy") names = {"rm_accuracy", "rm_tie_rate"};
  if (kind == "policy_accuracy") names = {"policy_accuracy_base", "forced_token_rate"};
  if (kind.starts_with("generate.")) {
    names = {"rouge1", "rouge2", "rougeL", "style_match", "length_ratio"};
  }
  const auto add = [this](const std::string& name, std::optional<double> weight) {
    const std::string label = name + (weight ? format_double(*weight) : "");
    result_.metrics.push_back({name, weight, 16 * made_up_number(label), 16, 0});
  };
  for (const std::string& name : names) add(name, std::nullopt);
  if (kind != "policy_accuracy") return;
  std::vector<double> weights{1.0};
  const auto given = job_.spec.parameters.find("weights");
  if (given != job_.spec.parameters.end()) {
    if (const auto* list = std::get_if<ValueList>(&given->second)) {
      weights.clear();
      for (const Value& weight : *list) {
        if (const auto* real = std::get_if<double>(&weight)) weights.push_back(*real);
      }
    }
  }
  for (const double weight : weights) {
    for (const char* name : {"policy_accuracy", "policy_accuracy_per_token", "flip_rate"}) {
      add(name, weight);
    }
  }
}

std::string script_of(const JobSpec& spec) {
  const auto parameter = spec.parameters.find("script");
  if (parameter != spec.parameters.end()) {
    if (const auto* text = std::get_if<std::string>(&parameter->second)) return *text;
  }
  for (const std::string& entry : split(environment("PREFGRID_FAKE_SCRIPTS"), '|')) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos && entry.substr(0, equals) == spec.kind) {
      return entry.substr(equals + 1);
    }
  }
  return "default";
}

ExecutorReady abilities() {
  ExecutorReady ready;
  const std::string kinds = environment("PREFGRID_FAKE_KINDS");
  if (kinds.empty()) {
    ready.kinds = catalog().kind_versions();
    ready.kinds.push_back({"test", 1});
  }
  for (const std::string& entry : split(kinds, ',')) {
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos) continue;
    const auto version = static_cast<std::uint32_t>(number(entry.substr(colon + 1)));
    ready.kinds.push_back({entry.substr(0, colon), version});
  }
  const std::string threads = environment("OMP_NUM_THREADS");
  ready.profile.device = "cpu";
  ready.profile.library = "fake 1";
  ready.profile.blas_kernel = "none";
  ready.profile.cpu_capability = environment("ATEN_CPU_CAPABILITY");
  ready.profile.threads = static_cast<std::uint32_t>(number(threads.empty() ? "1" : threads));
  ready.profile.dtype = "fp32";
  ready.software_version = PREFGRID_VERSION;
  return ready;
}

void start(const std::string& action) {
  if (action.starts_with("print:")) std::printf("%s\n", action.substr(6).c_str());
  std::fflush(nullptr);
  if (action.starts_with("exit:")) std::_Exit(static_cast<int>(number(action.substr(5))));
  if (action == "crash") crash(SIGSEGV);
  if (action == "silent") hang();
}

int serve() {
  const auto channel = ExecutorChannel::open();
  if (!channel) {
    std::fprintf(stderr, "prefgrid-fake-executor: %s\n", channel.error().message.c_str());
    return 2;
  }
  for (const std::string& action : split(environment("PREFGRID_FAKE_START"), ';')) start(action);
  serve_jobs(**channel, abilities(), [](const RunJob& job, const ProgressReport& report) {
    return FakeJob(job, report).run(script_of(job.spec));
  });
  std::fflush(nullptr);
  std::_Exit(0);  // the channel's reader still waits
}

}  // namespace
}  // namespace prefgrid

int main() {
  return prefgrid::serve();
}
