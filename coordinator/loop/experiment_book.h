// The experiments of a store with their plans: where the loop finds a job's spec, and queries what
// people call it. Owned by one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/core/core.h"
#include "coordinator/plan.h"
#include "coordinator/store/store.h"

namespace prefgrid {

// How a stored experiment becomes a plan; tests put their own.
using Planner = std::function<Result<Plan>(const ExperimentRecord&)>;
// make_plan(spec_from_value, summary_from_value, digest, catalog()).
Planner catalog_planner();

struct BookedExperiment {
  ExperimentRecord record;
  std::shared_ptr<const Plan> plan;  // null: `problem` says why this version cannot expand it
  std::string problem;
};

struct BookedJob {
  ExperimentId experiment{};
  std::shared_ptr<const PlannedJob> job;
};

class ExperimentBook {
 public:
  const std::map<ExperimentId, BookedExperiment>& all() const { return experiments_; }
  const BookedExperiment* find(ExperimentId id) const;
  // The newest of that name.
  const BookedExperiment* find(const std::string& name) const;
  // Same name, spec and data; the newest.
  const BookedExperiment* same_as(const ExperimentRecord& record) const;
  ExperimentId next_id() const;
  void add(BookedExperiment experiment);
  // Precondition: an experiment of that id is there; its plan stays.
  void amend(const ExperimentRecord& record);

  // Precondition: the core was given this plan.
  PlannedJob job(ExperimentId id, std::uint32_t plan_index) const;
  // Jobs whose key starts so, over all experiments, each once; at most `limit`.
  std::vector<BookedJob> jobs_by_prefix(std::string_view hex_prefix, std::size_t limit) const;

 private:
  std::map<ExperimentId, BookedExperiment> experiments_;
};

// A core as the store left it: job records in pieces, then every experiment that can be expanded.
// The facts that this makes are returned, to be committed before anything else.
struct Restored {
  Core core;
  ExperimentBook book;
  std::vector<Fact> facts;
};
Result<Restored> restore(const Store& store, const Planner& planner, const CoreOptions& options,
                         MonotonicMs now, WallMs wall);

}  // namespace prefgrid
