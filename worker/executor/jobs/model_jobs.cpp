// pretrain and train.global_bt: the jobs whose artefact is a model folder.
#include <cmath>

#include "experiments/methods/global_bt.h"
#include "worker/executor/jobs/job_table.h"
#include "worker/nn/pretrain.h"
#include "worker/nn/safetensors.h"

namespace prefgrid {

Result<JobResult> run_pretrain(const JobEnvironment& job) {
  PREFGRID_ASSIGN(const auto dataset, job.dataset());
  PREFGRID_ASSIGN(const PretrainOptions options, pretrain_options(job.context().spec.parameters));
  PREFGRID_ASSIGN(PretrainOutcome outcome, pretrain(*dataset, options, job.context().progress));
  PREFGRID_TRY(outcome.model.save(job.output_dir()));
  PREFGRID_TRY(outcome.tokenizer.save(job.output_dir() / "tokenizer.json"));
  JobResult result;
  const auto add = [&](std::string_view name, double value) {
    if (!std::isnan(value)) result.metrics.push_back(single(name, value));  // NaN: no such items
  };
  add("valid_loss_nats", outcome.valid_loss_nats);
  add("test_loss_nats", outcome.test_loss_nats);
  add("unigram_loss_nats", outcome.unigram_loss_nats);
  result.metrics.push_back(single("skipped_items", static_cast<double>(outcome.skipped_items)));
  result.curve = std::move(outcome.curve);
  result.artifacts = {artifact("config.json"), artifact("model.safetensors"),
                      artifact("tokenizer.json")};
  return result;
}

Result<JobResult> run_train_global_bt(const JobEnvironment& job) {
  PREFGRID_ASSIGN(const auto dataset, job.dataset());
  PREFGRID_ASSIGN(const JobInput* folder, job.input("model"));
  // Its own copy: training changes the weights, and the resident ones belong to everybody.
  PREFGRID_ASSIGN(Transformer backbone, Transformer::load(folder->path));
  PREFGRID_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(folder->path / "tokenizer.json"));
  GlobalBtOptions options;
  options.learning_rate = job.real("learning_rate");
  options.weight_decay = job.real("weight_decay");
  options.batch = job.integer("batch");
  options.epochs = job.integer("epochs");
  options.max_prompt_tokens = job.integer("max_prompt_tokens");
  PREFGRID_ASSIGN(GlobalBtTraining training,
                  train_global_bt(backbone, tokenizer, *dataset, options, job.seed(),
                                  [&](std::uint64_t step, std::uint64_t total, double loss) {
                                    job.context().progress(step, total, loss);
                                  }));
  PREFGRID_TRY(backbone.save(job.output_dir()));
  PREFGRID_TRY(tokenizer.save(job.output_dir() / "tokenizer.json"));
  PREFGRID_TRY(save_safetensors({{"v", training.head}}, job.output_dir() / "head.safetensors"));
  JobResult result;
  result.metrics = {single("train_loss_nats", training.train_loss_nats)};
  if (training.valid_pairs > 0) {
    result.metrics.push_back({"valid_accuracy", std::nullopt,
                              training.valid_accuracy * static_cast<double>(training.valid_pairs),
                              training.valid_pairs, 0});
  }
  result.curve = std::move(training.curve);
  result.artifacts = {artifact("config.json"), artifact("head.safetensors"),
                      artifact("model.safetensors"), artifact("tokenizer.json")};
  return result;
}

}  // namespace prefgrid
