#include "coordinator/planned_jobs.h"

#include <algorithm>
#include <tuple>

#include "common/check.h"

namespace prefgrid {
namespace {

bool same_place(const CellLabel& a, const CellLabel& b) {
  const auto columns = [](const CellLabel& cell) {
    return std::tie(cell.method, cell.config, cell.backbone, cell.policy, cell.decoding,
                    cell.weight, cell.seed, cell.user, cell.user_group);
  };
  return columns(a) == columns(b);
}

// The cells of both, each place once.
std::vector<CellLabel> joined(std::vector<CellLabel> cells, const std::vector<CellLabel>& more) {
  for (const CellLabel& cell : more) {
    const bool known = std::any_of(cells.begin(), cells.end(),
                                   [&](const CellLabel& other) { return same_place(cell, other); });
    if (!known) cells.push_back(cell);
  }
  return cells;
}

}  // namespace

PlannedJob PlannedJobs::operator[](std::size_t index) const {
  const Entry& entry = entries_[index];
  PlannedJob job = shapes_[entry.shape];
  job.key = entry.key;
  job.affinity = entry.affinity;
  if (entry.user != none) {
    job.spec.parameters.emplace("user", users_[entry.user]);
    for (CellLabel& cell : job.cells) cell.user = users_[entry.user];
  }
  if (entry.adapt != none) job.spec.inputs.emplace("adapt", entries_[entry.adapt].key);
  job.dependencies = dependencies(index);
  return job;
}

std::vector<PlannedJobs::Index> PlannedJobs::dependencies(std::size_t index) const {
  std::vector<Index> all = shape(index).dependencies;
  if (entries_[index].adapt != none) all.push_back(entries_[index].adapt);
  return all;
}

void PlannedJobs::push_back(PlannedJob job) {
  Entry entry;
  entry.key = job.key;
  entry.affinity = job.affinity;
  entry.shape = add_shape(std::move(job));
  entries_.push_back(entry);
}

PlannedJobs::ShapeId PlannedJobs::add_shape(PlannedJob shape) {
  shapes_.push_back(std::move(shape));
  return static_cast<ShapeId>(shapes_.size() - 1);
}

PlannedJobs::UserId PlannedJobs::add_user(std::string user) {
  users_.push_back(std::move(user));
  return static_cast<UserId>(users_.size() - 1);
}

void PlannedJobs::add(const OfUser& job) {
  PREFGRID_CHECK(job.shape < shapes_.size() && job.user < users_.size(),
                 "a planned job of an unknown shape or user");
  entries_.push_back({job.key, job.affinity, job.shape, job.user, job.adapt.value_or(none)});
}

void PlannedJobs::add_cells(std::size_t index, ShapeId shape) {
  Entry& entry = entries_[index];
  const auto [found, is_new] = merged_.emplace(std::pair{entry.shape, shape}, entry.shape);
  if (is_new) {
    PlannedJob both = shapes_[entry.shape];
    both.cells = joined(std::move(both.cells), shapes_[shape].cells);
    found->second = add_shape(std::move(both));
  }
  entry.shape = found->second;
}

}  // namespace prefgrid
