// train.lore and adapt.lore.
#include "common/text.h"
#include "experiments/methods/lore.h"
#include "worker/executor/jobs/job_table.h"
#include "worker/executor/jobs/reward_setup.h"
#include "worker/nn/safetensors.h"

namespace prefgrid {
namespace {

// Pairs of the seen users, with their row in W.
LorePairs seen_lore_pairs(const Dataset& dataset, const Features& features, Split split) {
  const std::vector<std::uint32_t> pairs = seen_pairs(dataset, split);
  std::vector<std::int64_t> row_of(dataset.users.size());
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < dataset.users.size(); ++i) {
    row_of[i] = seen;
    seen += dataset.users[i].seen ? 1 : 0;
  }
  LorePairs lore{DifferenceMatrix(features, pairs), {}, seen};
  for (const std::uint32_t pair : pairs) lore.user.push_back(row_of[dataset.pairs[pair].user]);
  return lore;
}

}  // namespace

Result<JobResult> run_train_lore(const JobEnvironment& job) {
  PREFGRID_ASSIGN(const auto dataset, job.dataset());
  PREFGRID_ASSIGN(const auto features, job.features("features"));
  const LorePairs train = seen_lore_pairs(*dataset, *features, Split::train);
  const LorePairs valid = seen_lore_pairs(*dataset, *features, Split::valid);
  if (train.user.empty()) return invalid_input("train.lore: no train pairs of seen users");
  LoreOptions options;
  options.rank = job.integer("rank");
  options.learning_rate = job.real("learning_rate");
  options.steps = job.integer("steps");
  options.choose_by_valid = job.text("choose_step") == "valid";
  const auto total = static_cast<std::uint64_t>(options.steps);
  PREFGRID_ASSIGN(LoreTraining training, train_lore(train, valid, options, job.seed(),
                                                    [&](std::uint64_t step, double loss) {
                                                      job.context().progress(step, total, loss);
                                                    }));
  const TensorMap tensors = {{"V", training.parameters.directions},
                             {"W", training.parameters.logits}};
  PREFGRID_TRY(save_safetensors(tensors, job.output_dir() / "lore.safetensors"));
  JobResult result;
  result.metrics = {single("train_loss_nats", training.train.loss_nats),
                    single("chosen_step", static_cast<double>(training.chosen_step))};
  if (!valid.user.empty()) {
    result.metrics.push_back(single("valid_accuracy", training.valid.accuracy));
    result.metrics.push_back(single("valid_loss_nats", training.valid.loss_nats));
  }
  result.curve = std::move(training.curve);
  result.artifacts = {artifact("lore.safetensors")};
  return result;
}

Result<JobResult> run_adapt_lore(const JobEnvironment& job) {
  PREFGRID_ASSIGN(const auto dataset, job.dataset());
  PREFGRID_ASSIGN(const std::uint32_t user, job.user(*dataset));
  PREFGRID_ASSIGN(const auto features, job.features("features"));
  PREFGRID_ASSIGN(const JobInput* train, job.input("train"));
  PREFGRID_ASSIGN(const TensorMap tensors, load_safetensors(train->path / "lore.safetensors"));
  const auto directions = tensors.find("V");
  const DifferenceMatrix given(*features, dataset->users[user].given_pairs);
  if (directions == tensors.end() || directions->second.dim() != 2 ||
      directions->second.size(0) != given.dimensions()) {
    return invalid_input("adapt.lore: lore.safetensors does not fit the features");
  }
  if (given.rows() == 0) {
    return invalid_input("adapt.lore: user " + quoted(dataset->users[user].id) +
                         " has no given pairs to fit");
  }
  const LoreAdaptation fit =
      adapt_lore(given, directions->second.contiguous(), job.real("adapt_learning_rate"),
                 job.integer("adapt_steps"));
  const at::Tensor weights = at::tensor(at::ArrayRef<float>(fit.weights));
  PREFGRID_TRY(save_safetensors({{"w", weights}}, job.output_dir() / "user.safetensors"));
  JobResult result;
  result.metrics = {single("train_loss_nats", fit.loss_nats)};
  result.artifacts = {artifact("user.safetensors")};
  return result;
}

}  // namespace prefgrid
