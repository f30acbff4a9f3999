// generate.greedy and generate.args: completions of a user's test prompts, against the user's own.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/files.h"
#include "common/text.h"
#include "experiments/methods/prompts.h"
#include "experiments/methods/text_reward.h"
#include "worker/decoding/decoder.h"
#include "worker/decoding/hidden_state_reward.h"
#include "worker/executor/jobs/generation_metrics.h"
#include "worker/executor/jobs/item_scores.h"
#include "worker/executor/jobs/job_table.h"

namespace prefgrid {
namespace {

struct Generation {
  const JobEnvironment& job;
  const Dataset& dataset;
  std::uint32_t user;
  JobMethod method;
  std::shared_ptr<const LoadedModel> policy;
  std::vector<ItemRef> items;
  std::vector<std::vector<TokenId>> prompts;
  DecodeOptions options;
};

// Prompts and a region that depends on the job's parameters and the user's examples alone.
Result<void> set_prompts(Generation& run, std::span<const TokenId> examples) {
  const std::int64_t most = run.job.integer("max_prompt_tokens");
  const std::int64_t room =
      run.policy->transformer.config().max_tokens - run.options.max_new_tokens;
  if (room < 1) {
    return invalid_input("max_new_tokens " + std::to_string(run.options.max_new_tokens) +
                         " does not fit the model's context of " +
                         std::to_string(run.policy->transformer.config().max_tokens));
  }
  run.options.region = std::min(room, static_cast<std::int64_t>(examples.size()) + 1 + most);
  for (const ItemRef& item : run.items) {
    std::vector<TokenId> prompt(examples.begin(), examples.end());
    const auto own =
        prompt_tokens(run.policy->tokenizer, run.dataset.completions[item.index].prompt, most);
    prompt.insert(prompt.end(), own.begin(), own.end());
    cut_start(prompt, run.options.region);
    run.prompts.push_back(std::move(prompt));
  }
  return {};
}

Result<Generation> start(const JobEnvironment& job, const Dataset& dataset) {
  PREFGRID_ASSIGN(const std::uint32_t user, job.user(dataset));
  PREFGRID_ASSIGN(JobMethod method, job_method(job));
  PREFGRID_ASSIGN(auto policy, job.model("policy"));
  Generation run{job,
                 dataset,
                 user,
                 std::move(method),
                 std::move(policy),
                 test_items(dataset, user, false, job.integer("items")),
                 {},
                 {}};
  if (run.items.empty()) {
    return invalid_input(job.context().spec.kind + ": user " + quoted(dataset.users[user].id) +
                         " has no test completions");
  }
  run.options.max_new_tokens = job.integer("max_new_tokens");
  run.options.end_token = run.policy->tokenizer.end_token();
  return run;
}

std::function<void(std::int64_t)> step_progress(const Generation& run) {
  return [&run](std::int64_t step) {
    run.job.context().progress(static_cast<std::uint64_t>(step),
                               static_cast<std::uint64_t>(run.options.max_new_tokens),
                               std::nullopt);
  };
}

// generations.jsonl and the metrics of it.
Result<JobResult> finish(const Generation& run, const std::vector<Decoded>& decoded) {
  std::string lines;
  GenerationTally tally;
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    const CompletionItem& item = run.dataset.completions[run.items[i].index];
    // A cut response may end inside a character.
    const std::string text = to_valid_utf8(run.policy->tokenizer.decode(decoded[i].tokens));
    const nlohmann::ordered_json line = {{"id", item.id},
                                         {"user", run.dataset.users[run.user].id},
                                         {"generated", text},
                                         {"reference", item.completion},
                                         {"tokens", decoded[i].tokens.size()},
                                         {"ended", decoded[i].ended}};
    lines += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    tally.add(text, item.completion);
  }
  PREFGRID_TRY(write_file_atomic(run.job.output_dir() / "generations.jsonl", lines));
  JobResult result;
  result.metrics = tally.take();
  result.artifacts = {artifact("generations.jsonl")};
  return result;
}

// `backbone` is null for a reward that reads text; it must outlive what is returned.
Result<std::unique_ptr<CandidateReward>> candidate_reward(const Generation& run,
                                                          const JobReward& reward,
                                                          const LoadedModel* backbone) {
  if (reward.reads_text()) {
    return std::unique_ptr<CandidateReward>(
        std::make_unique<TextReward>(run.policy->tokenizer, reward.head, run.items.size()));
  }
  if (backbone->tokenizer.fingerprint() != run.policy->tokenizer.fingerprint()) {
    return invalid_input(
        "the policy and the reward's backbone have different vocabularies: one "
        "cannot guide the other token by token");
  }
  const std::int64_t context = backbone->transformer.config().max_tokens;
  if (run.options.region + run.options.max_new_tokens > context) {
    return invalid_input("prompt and new tokens do not fit the reward backbone's context of " +
                         std::to_string(context));
  }
  const std::int64_t k = std::min(run.options.k, run.policy->transformer.config().vocab_size);
  return std::unique_ptr<CandidateReward>(std::make_unique<HiddenStateReward>(
      backbone->transformer, reward.head, run.prompts, run.options.region,
      run.options.max_new_tokens, k, run.options.end_token));
}

}  // namespace

Result<JobResult> run_generate_greedy(const JobEnvironment& job) {
  PREFGRID_ASSIGN(const auto dataset, job.dataset());
  PREFGRID_ASSIGN(Generation run, start(job, *dataset));
  std::vector<TokenId> examples;
  if (find_field(run.method.row->fields, "shots") != nullptr) {
    const InContextOptions options{run.method.field("shots").integer(),
                                   run.method.field("shot_prompt_tokens").integer()};
    PREFGRID_ASSIGN(examples,
                    in_context_examples(run.policy->tokenizer, *dataset, run.user, options));
  }
  PREFGRID_TRY(set_prompts(run, examples));
  return finish(
      run, decode_greedy(run.policy->transformer, run.prompts, run.options, step_progress(run)));
}

Result<JobResult> run_generate_args(const JobEnvironment& job) {
  PREFGRID_ASSIGN(const auto dataset, job.dataset());
  PREFGRID_ASSIGN(Generation run, start(job, *dataset));
  PREFGRID_ASSIGN(const JobReward reward, job_reward(job, run.method, *dataset, run.user));
  PREFGRID_TRY(set_prompts(run, {}));
  run.options.k = job.integer("k");
  run.options.weight = job.real("weight");
  double scale = 1;
  if (job.text("reward_scale") == "step") {
    const ItemScorer scorer(job, *dataset, *run.policy, run.options.k,
                            job.integer("max_prompt_tokens"));
    const auto given = given_items(*dataset, run.user, job.integer("scale_items"));
    PREFGRID_ASSIGN(scale, scorer.step_scale(given, reward));
  }
  run.options.weight /= scale;
  // Held here while it decodes: the resident store may drop it.
  std::shared_ptr<const LoadedModel> backbone;
  if (!reward.reads_text()) {
    PREFGRID_ASSIGN(backbone, job.model(reward.backbone_input));
  }
  PREFGRID_ASSIGN(const auto guide, candidate_reward(run, reward, backbone.get()));
  PREFGRID_ASSIGN(
      const std::vector<Decoded> decoded,
      decode_guided(run.policy->transformer, run.prompts, run.options, *guide, step_progress(run)));
  PREFGRID_ASSIGN(JobResult result, finish(run, decoded));
  result.metrics.push_back(single("reward_scale", scale));
  return result;
}

}  // namespace prefgrid
