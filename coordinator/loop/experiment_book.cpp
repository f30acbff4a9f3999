#include "coordinator/loop/experiment_book.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "coordinator/spec.h"
#include "experiments/catalog/catalog.h"
#include "experiments/datasets/dataset.h"

namespace prefgrid {
namespace {

constexpr std::size_t jobs_per_event = 65'536;

}  // namespace

Planner catalog_planner() {
  return [](const ExperimentRecord& record) -> Result<Plan> {
    PREFGRID_ASSIGN(const ExperimentSpec spec, spec_from_value(record.spec));
    PREFGRID_ASSIGN(const DatasetSummary dataset, summary_from_value(record.dataset));
    return make_plan(spec, dataset, record.dataset_digest, catalog());
  };
}

const BookedExperiment* ExperimentBook::find(ExperimentId id) const {
  const auto found = experiments_.find(id);
  return found == experiments_.end() ? nullptr : &found->second;
}

const BookedExperiment* ExperimentBook::find(const std::string& name) const {
  for (auto it = experiments_.rbegin(); it != experiments_.rend(); ++it) {
    if (it->second.record.name == name) return &it->second;
  }
  return nullptr;
}

const BookedExperiment* ExperimentBook::same_as(const ExperimentRecord& record) const {
  for (auto it = experiments_.rbegin(); it != experiments_.rend(); ++it) {
    const ExperimentRecord& other = it->second.record;
    if (other.name == record.name && other.dataset_digest == record.dataset_digest &&
        other.spec == record.spec && other.dataset == record.dataset) {
      return &it->second;
    }
  }
  return nullptr;
}

ExperimentId ExperimentBook::next_id() const {
  const auto last =
      experiments_.empty() ? 0 : static_cast<std::uint32_t>(experiments_.rbegin()->first);
  return ExperimentId{last + 1};
}

void ExperimentBook::amend(const ExperimentRecord& record) {
  experiments_.at(record.id).record = record;
}

void ExperimentBook::add(BookedExperiment experiment) {
  const ExperimentId id = experiment.record.id;
  experiments_.insert_or_assign(id, std::move(experiment));
}

PlannedJob ExperimentBook::job(ExperimentId id, std::uint32_t plan_index) const {
  const BookedExperiment* const experiment = find(id);
  PREFGRID_CHECK(
      experiment != nullptr && experiment->plan && plan_index < experiment->plan->jobs.size(),
      "no job " + std::to_string(plan_index) + " in that experiment's plan");
  return experiment->plan->jobs[plan_index];
}

std::vector<BookedJob> ExperimentBook::jobs_by_prefix(std::string_view hex_prefix,
                                                      std::size_t limit) const {
  std::vector<BookedJob> found;
  std::unordered_set<JobKey> seen;
  for (const auto& [id, experiment] : experiments_) {
    if (!experiment.plan) continue;
    const PlannedJobs& jobs = experiment.plan->jobs;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (found.size() >= limit) return found;
      if (!jobs.key(i).hex().starts_with(hex_prefix) || !seen.insert(jobs.key(i)).second) continue;
      found.push_back({id, std::make_shared<const PlannedJob>(jobs[i])});
    }
  }
  return found;
}

Result<Restored> restore(const Store& store, const Planner& planner, const CoreOptions& options,
                         MonotonicMs now, WallMs wall) {
  Restored restored{Core(options), {}, {}};
  const auto react = [&](Event event) {
    Effects effects = restored.core.react(now, wall, std::move(event));
    std::move(effects.facts.begin(), effects.facts.end(), std::back_inserter(restored.facts));
  };
  JobsRestored piece;
  PREFGRID_TRY(store.each_job([&](const JobFact& job) {
    piece.jobs.push_back(job);
    if (piece.jobs.size() == jobs_per_event) react(std::exchange(piece, {}));
    return Result<bool>(true);
  }));
  if (!piece.jobs.empty()) react(std::move(piece));

  PREFGRID_ASSIGN(auto records, store.experiments());
  for (ExperimentRecord& record : records) {
    BookedExperiment booked{std::move(record), nullptr, ""};
    auto plan = planner(booked.record);
    if (plan.ok()) {
      booked.plan = std::make_shared<const Plan>(*std::move(plan));
      react(ExperimentSubmitted{.id = booked.record.id,
                                .name = booked.record.name,
                                .priority = booked.record.priority,
                                .plan = std::make_shared<const CorePlan>(core_plan(*booked.plan)),
                                .restored = true,
                                .cancelled = booked.record.cancelled});
    } else {
      booked.problem = plan.error().message;
      spdlog::error("experiment {} ({}) is left out: {}", booked.record.name,
                    static_cast<std::uint32_t>(booked.record.id), booked.problem);
    }
    restored.book.add(std::move(booked));
  }
  return restored;
}

}  // namespace prefgrid
