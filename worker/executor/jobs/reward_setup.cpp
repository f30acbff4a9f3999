#include "worker/executor/jobs/reward_setup.h"

#include <cmath>

#include "common/text.h"
#include "experiments/methods/lore.h"
#include "worker/nn/safetensors.h"

namespace prefgrid {
namespace {

Result<at::Tensor> artefact(const JobInput& folder, const std::string& file,
                            const std::string& tensor, std::int64_t dimensions) {
  PREFGRID_ASSIGN(const TensorMap tensors, load_safetensors(folder.path / file));
  const auto found = tensors.find(tensor);
  const std::string place = (folder.path / file).string() + ": tensor '" + tensor + "'";
  if (found == tensors.end()) return invalid_input(place + " is missing");
  if (found->second.scalar_type() != at::kFloat || found->second.dim() != dimensions) {
    return invalid_input(place + " has another type or shape");
  }
  if (!at::isfinite(found->second).all().item<bool>()) {
    return Error{ErrorCode::internal, place + " holds NaN or infinity: its training diverged"};
  }
  return found->second.contiguous();
}

std::vector<float> to_vector(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), tensor.data_ptr<float>() + tensor.numel()};
}

Result<LinearHead> lore_reward(const JobEnvironment& job, const Dataset& dataset,
                               std::uint32_t user, double scale) {
  PREFGRID_ASSIGN(const JobInput* train, job.input("train"));
  PREFGRID_ASSIGN(const at::Tensor directions, artefact(*train, "lore.safetensors", "V", 2));
  std::vector<float> weights;
  if (dataset.users[user].seen) {
    PREFGRID_ASSIGN(const at::Tensor logits, artefact(*train, "lore.safetensors", "W", 2));
    const std::int64_t row = seen_index(dataset, user);
    if (row >= logits.size(0)) {
      return invalid_input("lore.safetensors has fewer users than the dataset: they do not match");
    }
    weights = simplex_weights(logits[row]);
  } else {
    PREFGRID_ASSIGN(const JobInput* adapted, job.input("adapt"));
    PREFGRID_ASSIGN(const at::Tensor w, artefact(*adapted, "user.safetensors", "w", 1));
    weights = to_vector(w);
  }
  if (static_cast<std::int64_t>(weights.size()) != directions.size(1)) {
    return invalid_input("lore: " + std::to_string(weights.size()) + " user weights for " +
                         std::to_string(directions.size(1)) + " directions");
  }
  return lore_head(directions, weights, scale);
}

}  // namespace

Result<JobMethod> job_method(const JobEnvironment& job) {
  const std::string& kind = job.context().spec.kind;
  const Value* name = job.extra("method");
  if (name == nullptr || !std::holds_alternative<std::string>(*name)) {
    return invalid_input(kind + ": parameter \"method\" is missing or no text");
  }
  JobMethod method;
  method.row = catalog().method(name->text());
  if (method.row == nullptr) {
    return invalid_input(kind + ": method " + quoted(name->text()) + " is unknown here");
  }
  if (const Value* version = job.extra("method_version")) {
    const bool same =
        std::holds_alternative<std::int64_t>(*version) && version->integer() == method.row->version;
    if (!same) {
      return Error{ErrorCode::conflict, kind + ": another version of method " + name->text() +
                                            " was asked for than this executor has (" +
                                            std::to_string(method.row->version) + ")"};
    }
  }
  if (const Value* fields = job.extra("method_fields")) {
    if (!std::holds_alternative<ValueMap>(*fields)) {
      return invalid_input(kind + ": parameter \"method_fields\" is no map");
    }
    method.fields = fields->map();
    PREFGRID_TRY(check_fields(method.row->fields, method.fields, kind + ", method_fields"));
  }
  return method;
}

Result<JobReward> job_reward(const JobEnvironment& job, const JobMethod& method,
                             const Dataset& dataset, std::uint32_t user) {
  JobReward reward;
  PREFGRID_ASSIGN(reward.features, job.features("features"));
  if (method.row->name == "global_bt") {
    PREFGRID_ASSIGN(const JobInput* train, job.input("train"));
    PREFGRID_ASSIGN(const at::Tensor head, artefact(*train, "head.safetensors", "v", 1));
    reward.head.direction = to_vector(head);
    reward.backbone_input = "train";
  } else if (method.row->name == "lore") {
    PREFGRID_ASSIGN(reward.head, lore_reward(job, dataset, user, reward.features->scale));
    if (!reward.reads_text()) reward.backbone_input = "backbone";
  } else {
    return invalid_input("method " + std::string(method.row->name) + " has no reward");
  }
  const auto width = static_cast<std::size_t>(dimensions(reward.features->chosen));
  if (reward.head.direction.size() != width) {
    return invalid_input(std::string(method.row->name) + ": its direction has " +
                         std::to_string(reward.head.direction.size()) +
                         " entries, the features have " + std::to_string(width));
  }
  return reward;
}

std::int64_t seen_index(const Dataset& dataset, std::uint32_t user) {
  std::int64_t index = 0;
  for (std::uint32_t i = 0; i < user; ++i) index += dataset.users[i].seen ? 1 : 0;
  return index;
}

}  // namespace prefgrid
