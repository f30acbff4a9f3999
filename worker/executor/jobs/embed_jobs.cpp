// embed.lm and embed.bow.
#include <algorithm>

#include "common/text.h"
#include "experiments/methods/pair_states.h"
#include "experiments/methods/prompts.h"
#include "experiments/methods/text_reward.h"
#include "worker/executor/jobs/job_table.h"

namespace prefgrid {
namespace {

Result<JobResult> finish(const JobEnvironment& job, const Dataset& dataset, FeatureRows chosen,
                         FeatureRows rejected) {
  const Features features =
      scaled(std::move(chosen), std::move(rejected), seen_pairs(dataset, Split::train));
  if (!std::isfinite(features.scale)) {
    return Error{ErrorCode::internal,
                 job.context().spec.kind + ": the features are not finite; the model diverged"};
  }
  PREFGRID_TRY(save_features(features, job.output_dir() / "features.safetensors"));
  JobResult result;
  result.artifacts = {artifact("features.safetensors")};
  return result;
}

}  // namespace

Result<JobResult> run_embed_lm(const JobEnvironment& job) {
  PREFGRID_ASSIGN(const auto dataset, job.dataset());
  PREFGRID_ASSIGN(const auto backbone, job.model("backbone"));
  const auto pairs = static_cast<std::int64_t>(dataset->pairs.size());
  const ModelConfig& config = backbone->transformer.config();
  at::Tensor chosen = at::empty({pairs, config.d_model});
  at::Tensor rejected = at::empty({pairs, config.d_model});
  for (std::int64_t i = 0; i < pairs; ++i) {
    const PairItem& pair = dataset->pairs[static_cast<std::size_t>(i)];
    const auto good = response_tokens(backbone->tokenizer, pair.chosen);
    const auto bad = response_tokens(backbone->tokenizer, pair.rejected);
    auto prompt = prompt_tokens(backbone->tokenizer, pair.prompt, job.integer("max_prompt_tokens"));
    const auto room =
        config.max_tokens - static_cast<std::int64_t>(std::max(good.size(), bad.size()));
    if (room < 1) {
      return invalid_input("embed.lm: pair " + quoted(pair.id) +
                           " has a response that does not fit "
                           "the model's context of " +
                           std::to_string(config.max_tokens));
    }
    cut_start(prompt, room);
    const at::Tensor states = pair_states(backbone->transformer, prompt, good, bad);
    chosen[i].copy_(states[0]);
    rejected[i].copy_(states[1]);
    job.context().progress(static_cast<std::uint64_t>(i + 1), static_cast<std::uint64_t>(pairs),
                           std::nullopt);
  }
  return finish(job, *dataset, chosen, rejected);
}

Result<JobResult> run_embed_bow(const JobEnvironment& job) {
  PREFGRID_ASSIGN(const auto dataset, job.dataset());
  SparseRows chosen;
  chosen.dimensions = job.integer("dimensions");
  SparseRows rejected = chosen;
  for (const PairItem& pair : dataset->pairs) {
    append_bag(chosen, pair.chosen);
    append_bag(rejected, pair.rejected);
  }
  return finish(job, *dataset, std::move(chosen), std::move(rejected));
}

}  // namespace prefgrid
