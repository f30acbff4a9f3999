// A tiny experiment for tests of jobs: a dataset of three users, two seen and one unseen, whose
// habits differ (full stop or none), and every job kind's inputs made by the jobs before it.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.h"
#include "experiments/datasets/dataset.h"
#include "tests/support/temp_dir.h"
#include "worker/executor/run_job.h"

namespace prefgrid {

inline Dataset tiny_dataset() {
  Dataset dataset;
  dataset.name = "tiny";
  const char* parts[] = {"driver", "window", "server", "cursor", "screen", "pointer", "colour"};
  const char* verbs[] = {"fix", "add", "remove", "check", "move"};
  const std::vector<std::string> users = {"ada", "bob", "eve"};
  for (std::uint32_t user = 0; user < 3; ++user) {
    User person;
    person.id = users[user];
    person.seen = user < 2;
    for (std::uint32_t i = 0; i < 18; ++i) {
      const std::string number = (i < 10 ? "0" : "") + std::to_string(i);
      const std::string subject = std::string(verbs[(i + user) % 5]) + " the " +
                                  parts[(i * 3 + user) % 7] + " " + parts[(i + 2 * user) % 7];
      const std::string prompt = "The " + std::string(parts[(i * 3 + user) % 7]) + " of item " +
                                 number + users[user] + " did not work.\n";
      const bool stop = user != 1;
      const Split split = i < 11 ? Split::train : i < 14 ? Split::valid : Split::test;
      if (split == Split::train && (person.seen || i < 4)) {
        person.given_pairs.push_back(static_cast<std::uint32_t>(dataset.pairs.size()));
        person.given_completions.push_back(static_cast<std::uint32_t>(dataset.completions.size()));
      }
      const std::string own = subject + (stop ? "." : "");
      const std::string other = subject + (stop ? "" : ".");
      dataset.pairs.push_back({users[user] + "-p" + number, user, prompt, own, other, split});
      dataset.completions.push_back({users[user] + "-c" + number, user, prompt, own, split});
    }
    dataset.users.push_back(std::move(person));
  }
  return dataset;
}

// The model's and methods' fields of a run that takes a second.
inline ValueMap tiny_model() {
  return {{"layers", 2},         {"d_model", 32},          {"heads", 2},        {"kv_heads", 2},
          {"d_ff", 64},          {"vocab_size", 300},      {"max_tokens", 192}, {"tokens", 12'000},
          {"batch_tokens", 768}, {"max_prompt_tokens", 40}};
}

class Pipeline {
 public:
  Pipeline() {
    const std::filesystem::path file =
        folder_.write("dataset.jsonl", write_dataset(tiny_dataset()));
    inputs_["dataset"] = {"dataset", file};
  }

  // Runs a job and keeps its folder as the input `name`. `inputs`: name in the job -> kept name.
  Result<JobResult> run(JobRunner& runner, const std::string& name, JobSpec spec,
                        const std::map<std::string, std::string>& inputs) {
    const std::filesystem::path output = folder_.path() / ("out-" + std::to_string(++count_));
    std::filesystem::create_directory(output);
    if (spec.kind_version == 0) spec.kind_version = *catalog().version_of(spec.kind);
    JobContext context{spec, {{"dataset", inputs_.at("dataset")}}, output, [](auto, auto, auto) {}};
    for (const auto& [own, kept] : inputs) context.inputs[own] = inputs_.at(kept);
    Result<JobResult> result = runner.run(context);
    inputs_[name] = {name, output};
    return result;
  }

  const std::filesystem::path& folder_of(const std::string& name) const {
    return inputs_.at(name).path;
  }

 private:
  TempDir folder_;
  std::map<std::string, JobInput> inputs_;
  int count_ = 0;
};

struct PipelineJob {
  std::string name;
  JobSpec spec;
  std::map<std::string, std::string> inputs;
};

inline JobSpec job_spec(const std::string& kind, ValueMap parameters,
                        std::optional<std::uint64_t> seed = std::nullopt) {
  JobSpec spec;
  spec.kind = kind;
  spec.kind_version = 0;  // today's
  spec.parameters = std::move(parameters);
  spec.seed = seed;
  return spec;
}

inline ValueMap of_user(const std::string& method, const std::string& user, ValueMap more = {},
                        ValueMap method_fields = {}) {
  more["method"] = method;
  more["method_version"] = static_cast<std::int64_t>(catalog().method(method)->version);
  more["user"] = user;
  if (!method_fields.empty()) more["method_fields"] = std::move(method_fields);
  return more;
}

// Every kind at least once, each after the jobs that it reads.
inline std::vector<PipelineJob> tiny_jobs() {
  const ValueMap policy = {{"k", 4}, {"items", 3}, {"scale_items", 2}, {"max_prompt_tokens", 40}};
  const ValueMap greedy = {{"items", 3}, {"max_new_tokens", 8}, {"max_prompt_tokens", 40}};
  ValueMap args = greedy;
  args["k"] = 4;
  args["scale_items"] = 2;
  const ValueMap bow = {{"features_from", "bow"}, {"rank", 2}, {"steps", 60}};
  const ValueMap lm = {{"rank", 2}, {"steps", 60}};
  const ValueMap adapt_bow = {
      {"features_from", "bow"}, {"rank", 2}, {"steps", 60}, {"user", "eve"}};
  const std::map<std::string, std::string> bow_reward = {
      {"policy", "model"}, {"features", "bow"}, {"train", "lore_bow"}, {"adapt", "adapt_bow"}};
  const std::map<std::string, std::string> lm_reward = {
      {"policy", "model"}, {"features", "embed"}, {"train", "lore_lm"}, {"backbone", "bt"}};
  const std::map<std::string, std::string> bt_reward = {
      {"policy", "model"}, {"features", "embed"}, {"train", "bt"}};
  const ValueMap shots = {{"shots", 2}, {"shot_prompt_tokens", 10}};
  return {
      {"model", job_spec("pretrain", tiny_model()), {}},
      {"bt",
       job_spec("train.global_bt",
                {{"learning_rate", 3e-3}, {"epochs", 3}, {"batch", 8}, {"max_prompt_tokens", 40}},
                1),
       {{"model", "model"}}},
      {"embed", job_spec("embed.lm", {{"max_prompt_tokens", 40}}), {{"backbone", "bt"}}},
      {"bow", job_spec("embed.bow", {{"dimensions", 512}}), {}},
      {"lore_bow", job_spec("train.lore", bow, 1), {{"features", "bow"}}},
      {"lore_lm", job_spec("train.lore", lm, 1), {{"features", "embed"}}},
      {"adapt_bow",
       job_spec("adapt.lore", adapt_bow),
       {{"features", "bow"}, {"train", "lore_bow"}}},
      {"rm_bt", job_spec("rm_accuracy", of_user("global_bt", "ada")), bt_reward},
      {"rm_bow", job_spec("rm_accuracy", of_user("lore", "eve", {}, bow)), bow_reward},
      {"policy_zero",
       job_spec("policy_accuracy", of_user("zero_shot", "ada", policy)),
       {{"policy", "model"}}},
      {"policy_icl",
       job_spec("policy_accuracy", of_user("icl", "ada", policy, shots)),
       {{"policy", "model"}}},
      {"policy_bt", job_spec("policy_accuracy", of_user("global_bt", "ada", policy)), bt_reward},
      {"policy_lore", job_spec("policy_accuracy", of_user("lore", "ada", policy, lm)), lm_reward},
      {"policy_bow", job_spec("policy_accuracy", of_user("lore", "eve", policy, bow)), bow_reward},
      {"greedy_zero",
       job_spec("generate.greedy", of_user("zero_shot", "bob", greedy)),
       {{"policy", "model"}}},
      {"greedy_icl",
       job_spec("generate.greedy", of_user("icl", "eve", greedy, shots)),
       {{"policy", "model"}}},
      {"args_bt", job_spec("generate.args", of_user("global_bt", "bob", args)), bt_reward},
      {"args_bow", job_spec("generate.args", of_user("lore", "eve", args, bow)), bow_reward},
  };
}

// Everything of a result that must not move but the profile and the duration: metrics, curve and
// the artefacts' bytes.
inline std::string result_bytes(const JobResult& result, const std::filesystem::path& folder) {
  std::ostringstream out;
  out.precision(17);
  for (const Metric& metric : result.metrics) {
    out << metric.name << '@' << metric.weight.value_or(-1) << '=' << metric.sum << '/'
        << metric.count << '/' << metric.missing << '\n';
  }
  for (const CurvePoint& point : result.curve) {
    out << point.series << ' ' << point.step << ' ' << point.value << '\n';
  }
  for (const ArtifactRef& artefact : result.artifacts) {
    std::ifstream file(folder / artefact.name, std::ios::binary);
    out << artefact.name << ':' << file.rdbuf() << '\n';
  }
  return out.str();
}

}  // namespace prefgrid
