#include "coordinator/plan.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/check.h"
#include "common/random.h"
#include "coordinator/grid.h"
#include "coordinator/plan_users.h"
#include "experiments/catalog/describe.h"

namespace prefgrid {
namespace {

constexpr std::array<const char*, 7> stage_order = {
    "pretrain", "embed", "train", "adapt", "rm_accuracy", "policy_accuracy", "generate"};
constexpr std::size_t most_jobs = 10'000'000;
constexpr std::string_view adapt_prefix = "adapt_";  // fields that only a new user's fit reads

using Index = PlannedJobs::Index;
using Seed = std::optional<std::uint64_t>;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {  // splitmix64's finaliser over both
  std::uint64_t x = a + 0x9E3779B97F4A7C15ull * (b + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// A reward that is ready for use: the jobs whose artefacts make it, its place in the tables.
struct Reward {
  const MethodRow* method = nullptr;
  ValueMap fields;                      // the method's, defaults left out
  CellLabel label;                      // method, config, backbone, seed
  std::map<std::string, Index> inputs;  // by input name; `adapt` comes with the user
  std::uint64_t affinity = 0;           // of its backbone
};

// A per-user job but for its user, whose `adapt` job is known by a slot of the user's own.
struct Shape {
  PlannedJob job;                    // its spec becomes each user's in turn, to make the keys
  std::optional<std::size_t> makes;  // slot that this job fills
  std::optional<std::size_t> uses;   // slot whose job becomes the input `adapt`
  PlannedJobs::ShapeId id = 0;       // among the plan's jobs, without a user
};

class Planner {
 public:
  Planner(const ExperimentSpec& spec, const ArtifactDigest& dataset, const Catalog& catalog)
      : spec_(spec), dataset_(dataset), catalog_(catalog), pretrained_(spec.models.size()) {}

  Result<Plan> make(const DatasetSummary& summary);

 private:
  PlannedJob job_of(const std::string& kind, const char* stage) const;
  void set_input(PlannedJob& job, const std::string& name, Index index) const;
  Result<Index> add(PlannedJob job);

  Result<Index> pretrain(std::size_t model);
  Result<Index> train_model(std::size_t model, const std::string& method, const ValueMap& fields,
                            CellLabel label);
  Result<Index> embed_model(std::size_t model, Index backbone, const CellLabel& label);
  Result<Index> embed_words();
  Result<Index> train(const Reward& reward, Index features);
  Result<Reward> reward_of(const GridPoint& point);
  Result<void> add_feature_inputs(const GridPoint& point, Reward& reward);

  void set_evaluation(PlannedJob& job, const char* parameter, const char* evaluation_name) const;
  PlannedJob adapt_job(const Reward& reward) const;
  PlannedJob evaluation_job(const Reward& reward, const std::string& kind, const char* stage,
                            bool seen) const;
  PlannedJob policy_job(const Reward& reward, std::size_t policy, bool seen) const;
  PlannedJob generation_job(const Reward& reward, std::size_t policy, const ConfiguredRow& decoder,
                            Seed seed, bool seen) const;
  void set_policy(PlannedJob& job, const Reward& reward, std::size_t policy) const;
  std::vector<Shape> shapes_for(const std::vector<GridPoint>& points,
                                const std::vector<Reward>& rewards, bool seen) const;
  void add_guided_shapes(const GridPoint& point, const Reward& reward, std::size_t policy,
                         bool seen, std::optional<std::size_t> slot,
                         std::vector<Shape>& shapes) const;
  std::vector<Shape> registered(std::vector<Shape> shapes);
  Result<void> add_user(const UserSummary& user, std::vector<Shape>& shapes);
  Result<Index> add_job_of_user(Shape& shape, PlannedJobs::OfUser job);

  const ExperimentSpec& spec_;
  const ArtifactDigest& dataset_;
  const Catalog& catalog_;
  std::vector<std::optional<Index>> pretrained_;  // by model
  std::unordered_map<JobKey, Index> index_;
  std::vector<Index> slots_;  // of the user in hand
  Plan plan_;
};

// The fields that a job reads when no new user is fitted.
ValueMap without_adapt_fields(const ValueMap& fields) {
  ValueMap out;
  for (const auto& [name, value] : fields) {
    if (!name.starts_with(adapt_prefix)) out.emplace(name, value);
  }
  return out;
}

// "args", or "args(k=20)" where it differs from the defaults; the weight has its own column.
std::string decoding_label(const ConfiguredRow& decoder) {
  std::string fields;
  for (const auto& [name, value] : decoder.fields) {
    if (name == "weight") continue;
    fields += (fields.empty() ? "" : ",") + name + "=" + value_text(value);
  }
  return fields.empty() ? decoder.name : decoder.name + "(" + fields + ")";
}

// --- shared jobs ---

PlannedJob Planner::job_of(const std::string& kind, const char* stage) const {
  PlannedJob job;
  const auto version = catalog_.version_of(kind);
  PREFGRID_CHECK(version.has_value(), "the catalogue has no kind " + kind);
  job.spec.kind = kind;
  job.spec.kind_version = *version;
  job.spec.inputs.emplace("dataset", dataset_);
  job.stage = stage;
  return job;
}

void Planner::set_input(PlannedJob& job, const std::string& name, Index index) const {
  job.spec.inputs.emplace(name, plan_.jobs.key(index));
  if (std::find(job.dependencies.begin(), job.dependencies.end(), index) ==
      job.dependencies.end()) {
    job.dependencies.push_back(index);
  }
}

// The index of the job, which may be there already: then it only gains its place in the tables.
Result<Index> Planner::add(PlannedJob job) {
  PREFGRID_ASSIGN(job.key, job_key(job.spec));
  const auto [found, is_new] = index_.emplace(job.key, static_cast<Index>(plan_.jobs.size()));
  if (is_new) {
    plan_.jobs.push_back(std::move(job));
  } else {
    plan_.jobs.add_cells(found->second, plan_.jobs.add_shape(std::move(job)));
  }
  return found->second;
}

Result<Index> Planner::pretrain(std::size_t model) {
  if (pretrained_[model]) return *pretrained_[model];
  PlannedJob job = job_of("pretrain", "pretrain");
  job.spec.parameters = spec_.models[model].fields;
  CellLabel label;
  label.method = "pretrain";
  label.policy = spec_.models[model].name;
  job.cells.push_back(std::move(label));
  PREFGRID_ASSIGN(const JobKey key, job_key(job.spec));
  job.affinity = std::hash<JobKey>()(key);
  PREFGRID_ASSIGN(const Index index, add(std::move(job)));
  pretrained_[model] = index;
  return index;
}

// train.<a method that trains a model>
Result<Index> Planner::train_model(std::size_t model, const std::string& method,
                                   const ValueMap& fields, CellLabel label) {
  PREFGRID_ASSIGN(const Index base, pretrain(model));
  PlannedJob job = job_of("train." + method, "train");
  job.spec.parameters = without_adapt_fields(fields);
  job.spec.seed = label.seed;
  set_evaluation(job, "max_prompt_tokens", "max_prompt_tokens");
  set_input(job, "model", base);
  job.affinity = plan_.jobs.affinity(base);
  job.cells.push_back(std::move(label));
  return add(std::move(job));
}

Result<Index> Planner::embed_model(std::size_t model, Index backbone, const CellLabel& label) {
  PlannedJob job = job_of("embed.lm", "embed");
  set_evaluation(job, "max_prompt_tokens", "max_prompt_tokens");
  set_input(job, "backbone", backbone);
  job.affinity = plan_.jobs.affinity(*pretrained_[model]);
  CellLabel own;
  own.method = "embed";
  own.backbone = label.backbone;
  own.seed = label.seed;
  job.cells.push_back(std::move(own));
  return add(std::move(job));
}

Result<Index> Planner::embed_words() {
  PlannedJob job = job_of("embed.bow", "embed");
  set_evaluation(job, "dimensions", "bow_dimensions");
  job.affinity = stable_hash("bow");
  CellLabel label;
  label.method = "embed";
  label.backbone = "bow";
  job.cells.push_back(std::move(label));
  return add(std::move(job));
}

Result<Index> Planner::train(const Reward& reward, Index features) {
  PlannedJob job = job_of("train." + std::string(reward.method->name), "train");
  job.spec.parameters = without_adapt_fields(reward.fields);
  if (reward.method->train_reads_seed) job.spec.seed = reward.label.seed;
  set_input(job, "features", features);
  job.affinity = plan_.jobs.affinity(features);
  job.cells.push_back(reward.label);
  return add(std::move(job));
}

// Features of a reward-trained backbone, or of words; adds `features` and `backbone`.
Result<void> Planner::add_feature_inputs(const GridPoint& point, Reward& reward) {
  if (point.features == Features::bow) {
    PREFGRID_ASSIGN(reward.inputs["features"], embed_words());
    return {};
  }
  PREFGRID_ASSIGN(const std::optional<std::size_t> listed,
                  feature_source(spec_, spec_.methods[point.method].mark));
  CellLabel label;
  label.method = "global_bt";
  label.config = listed ? spec_.methods[*listed].label : "";
  label.backbone = reward.label.backbone;
  label.seed = reward.label.seed;
  const ValueMap fields = listed ? spec_.methods[*listed].fields : ValueMap();
  PREFGRID_ASSIGN(const Index backbone, train_model(*point.backbone, label.method, fields, label));
  reward.inputs["backbone"] = backbone;
  PREFGRID_ASSIGN(reward.inputs["features"], embed_model(*point.backbone, backbone, label));
  return {};
}

Result<Reward> Planner::reward_of(const GridPoint& point) {
  const ConfiguredRow& row = spec_.methods[point.method];
  Reward reward;
  reward.method = catalog_.method(row.name);
  reward.fields = row.fields;
  reward.label.method = row.name;
  reward.label.config = row.label;
  reward.label.seed = point.seed;
  if (point.backbone) reward.label.backbone = spec_.models[*point.backbone].name;
  if (point.features == Features::bow) reward.label.backbone = "bow";
  if (reward.method->trains_model) {
    PREFGRID_ASSIGN(const Index trained,
                    train_model(*point.backbone, row.name, row.fields, reward.label));
    reward.inputs["train"] = trained;
    PREFGRID_ASSIGN(reward.inputs["features"], embed_model(*point.backbone, trained, reward.label));
  } else if (reward.method->reads_features) {
    PREFGRID_TRY(add_feature_inputs(point, reward));
    if (reward.method->has_train) {
      PREFGRID_ASSIGN(reward.inputs["train"], train(reward, reward.inputs.at("features")));
    }
  }
  if (reward.inputs.contains("features")) {
    reward.affinity = std::hash<JobKey>()(plan_.jobs.key(reward.inputs.at("features")));
  }
  return reward;
}

// --- per-user jobs ---

// Copies an evaluation field that differs from its default.
void Planner::set_evaluation(PlannedJob& job, const char* parameter,
                             const char* evaluation_name) const {
  const auto given = spec_.evaluation.find(evaluation_name);
  if (given != spec_.evaluation.end()) job.spec.parameters.emplace(parameter, given->second);
}

PlannedJob Planner::adapt_job(const Reward& reward) const {
  PlannedJob job = job_of("adapt." + std::string(reward.method->name), "adapt");
  job.spec.parameters = reward.fields;
  set_input(job, "features", reward.inputs.at("features"));
  if (reward.method->has_train) set_input(job, "train", reward.inputs.at("train"));
  job.affinity = mixed(0, reward.affinity);
  job.cells.push_back(reward.label);
  return job;
}

PlannedJob Planner::evaluation_job(const Reward& reward, const std::string& kind, const char* stage,
                                   bool seen) const {
  PlannedJob job = job_of(kind, stage);
  const bool adapted = reward.method->has_adapt && !seen;
  job.spec.parameters = {
      {"method", std::string(reward.method->name)},
      {"method_version", static_cast<std::int64_t>(reward.method->version)},
      {"method_fields", adapted ? reward.fields : without_adapt_fields(reward.fields)}};
  for (const auto& [name, index] : reward.inputs) set_input(job, name, index);
  job.affinity = mixed(0, reward.affinity);
  job.cells.push_back(reward.label);
  return job;
}

void Planner::set_policy(PlannedJob& job, const Reward& reward, std::size_t policy) const {
  const Index index = *pretrained_[policy];
  set_input(job, "policy", index);
  job.affinity = mixed(plan_.jobs.affinity(index), reward.affinity);
  job.cells.front().policy = spec_.models[policy].name;
}

PlannedJob Planner::policy_job(const Reward& reward, std::size_t policy, bool seen) const {
  PlannedJob job = evaluation_job(reward, "policy_accuracy", "policy_accuracy", seen);
  set_evaluation(job, "k", "k");
  set_evaluation(job, "items", "policy_items");
  set_evaluation(job, "max_prompt_tokens", "max_prompt_tokens");
  if (reward.method->has_reward) {  // without one there is nothing to weigh or scale
    set_evaluation(job, "weights", "weights");
    set_evaluation(job, "scale_items", "scale_items");
    set_evaluation(job, "reward_scale", "reward_scale");
  }
  set_policy(job, reward, policy);
  return job;
}

PlannedJob Planner::generation_job(const Reward& reward, std::size_t policy,
                                   const ConfiguredRow& decoder, Seed seed, bool seen) const {
  PlannedJob job = evaluation_job(reward, "generate." + decoder.name, "generate", seen);
  set_evaluation(job, "items", "generation_items");
  set_evaluation(job, "max_prompt_tokens", "max_prompt_tokens");
  set_evaluation(job, "max_new_tokens", "max_new_tokens");
  for (const auto& [name, value] : decoder.fields) job.spec.parameters.emplace(name, value);
  set_policy(job, reward, policy);
  const DecoderRow& row = *catalog_.decoder(decoder.name);
  CellLabel& label = job.cells.front();
  label.decoding = decoding_label(decoder);
  if (find_field(row.fields, "weight") != nullptr) {
    label.weight = field_value(row.fields, decoder.fields, "weight").real();
  }
  if (row.reads_seed) {
    job.spec.seed = seed;
    label.seed = seed;
  }
  return job;
}

void Planner::add_guided_shapes(const GridPoint& point, const Reward& reward, std::size_t policy,
                                bool seen, std::optional<std::size_t> slot,
                                std::vector<Shape>& shapes) const {
  if (has_policy_accuracy(spec_, catalog_)) {
    shapes.push_back({policy_job(reward, policy, seen), std::nullopt, slot, 0});
  }
  if (!has_generation(spec_, catalog_)) return;
  for (const std::size_t d : point.decoders) {
    const ConfiguredRow& decoder = spec_.decoders[d];
    // A sampling decoder draws by the grid's seeds even where its method reads none.
    std::vector<Seed> seeds = {point.seed};
    if (catalog_.decoder(decoder.name)->reads_seed && !point.seed) {
      seeds.assign(spec_.seeds.begin(), spec_.seeds.end());
    }
    for (const Seed& seed : seeds) {
      shapes.push_back(
          {generation_job(reward, policy, decoder, seed, seen), std::nullopt, slot, 0});
    }
  }
}

// All per-user jobs of a group, those of one policy side by side.
std::vector<Shape> Planner::shapes_for(const std::vector<GridPoint>& points,
                                       const std::vector<Reward>& rewards, bool seen) const {
  std::vector<Shape> shapes;
  std::vector<std::optional<std::size_t>> slots(points.size());
  std::size_t used = 0;
  for (std::size_t p = 0; p < points.size(); ++p) {
    if (rewards[p].method->has_adapt && !seen) {
      slots[p] = used++;
      shapes.push_back({adapt_job(rewards[p]), slots[p], std::nullopt, 0});
    }
    if (rewards[p].method->has_reward) {
      shapes.push_back({evaluation_job(rewards[p], "rm_accuracy", "rm_accuracy", seen),
                        std::nullopt, slots[p], 0});
    }
  }
  for (const std::size_t policy : models_by_name(spec_)) {
    for (std::size_t p = 0; p < points.size(); ++p) {
      const auto& policies = points[p].policies;
      if (std::find(policies.begin(), policies.end(), policy) == policies.end()) continue;
      add_guided_shapes(points[p], rewards[p], policy, seen, slots[p], shapes);
    }
  }
  for (Shape& shape : shapes) shape.job.cells.front().user_group = seen ? "seen" : "unseen";
  return shapes;
}

std::vector<Shape> Planner::registered(std::vector<Shape> shapes) {
  for (Shape& shape : shapes) shape.id = plan_.jobs.add_shape(shape.job);
  return shapes;
}

Result<Index> Planner::add_job_of_user(Shape& shape, PlannedJobs::OfUser job) {
  PREFGRID_ASSIGN(job.key, job_key(shape.job.spec));
  const auto [found, is_new] = index_.emplace(job.key, static_cast<Index>(plan_.jobs.size()));
  if (is_new) {
    plan_.jobs.add(job);
  } else {
    plan_.jobs.add_cells(found->second, job.shape);
  }
  return found->second;
}

Result<void> Planner::add_user(const UserSummary& user, std::vector<Shape>& shapes) {
  const std::uint64_t hash = stable_hash(user.id);
  const PlannedJobs::UserId id = plan_.jobs.add_user(user.id);
  for (Shape& shape : shapes) {
    PlannedJobs::OfUser job{.shape = shape.id, .key = {}, .user = id, .adapt = {}};
    job.affinity = mixed(shape.job.affinity, hash);
    shape.job.spec.parameters["user"] = user.id;
    if (shape.uses) {
      job.adapt = slots_[*shape.uses];
      shape.job.spec.inputs["adapt"] = plan_.jobs.key(*job.adapt);
    }
    PREFGRID_ASSIGN(const Index index, add_job_of_user(shape, job));
    if (!shape.makes) continue;
    if (slots_.size() <= *shape.makes) slots_.resize(*shape.makes + 1);
    slots_[*shape.makes] = index;
  }
  return {};
}

Result<Plan> Planner::make(const DatasetSummary& summary) {
  PREFGRID_ASSIGN(const std::vector<GridPoint> points, expand_grid(spec_, catalog_));
  PREFGRID_ASSIGN(UsableUsers usable, usable_users(spec_, summary, catalog_));
  plan_.experiment = spec_.experiment;
  plan_.notes = spec_.notes;
  plan_.notes.insert(plan_.notes.end(), usable.notes.begin(), usable.notes.end());

  for (const GridPoint& point : points) {
    for (const std::size_t policy : point.policies) PREFGRID_TRY(pretrain(policy));
  }
  std::vector<Reward> rewards;
  for (const GridPoint& point : points) {
    PREFGRID_ASSIGN(Reward reward, reward_of(point));
    rewards.push_back(std::move(reward));
  }
  std::vector<Shape> seen = registered(shapes_for(points, rewards, true));
  std::vector<Shape> unseen = registered(shapes_for(points, rewards, false));
  std::size_t total = plan_.jobs.size();
  for (const UserSummary& user : usable.users) total += user.seen ? seen.size() : unseen.size();
  if (total > most_jobs) {
    return refused_at(spec_, {},
                      "the grid has " + std::to_string(total) + " jobs; at most " +
                          std::to_string(most_jobs) + " fit one experiment: split it");
  }
  plan_.jobs.reserve(total);
  index_.reserve(total);
  for (const UserSummary& user : usable.users) {
    PREFGRID_TRY(add_user(user, user.seen ? seen : unseen));
  }
  std::unordered_set<std::string> present;
  for (std::size_t i = 0; i < plan_.jobs.size(); ++i) present.insert(plan_.jobs.stage(i));
  for (const char* stage : stage_order) {
    if (present.contains(stage)) plan_.stages.emplace_back(stage);
  }
  return std::move(plan_);
}

}  // namespace

Result<Plan> make_plan(const ExperimentSpec& spec, const DatasetSummary& dataset,
                       const ArtifactDigest& dataset_digest, const Catalog& catalog) {
  return Planner(spec, dataset_digest, catalog).make(dataset);
}

}  // namespace prefgrid
