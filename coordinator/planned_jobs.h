// The jobs of a plan, packed: a grid has few shapes of jobs and many users. What the jobs of one
// shape have in common is kept once; a job adds its key, its user and the fit for that user. A
// whole PlannedJob is put together when somebody asks, which costs a microsecond: loops over a
// million jobs ask for the parts. Owned by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job.h"

namespace prefgrid {

// Where a job's numbers stand in the tables. Display only: never part of a JobKey.
struct CellLabel {
  std::string method;                 // "lore"; "pretrain" for a model's own losses
  std::string config;                 // "features_from=bow,rank=5": the fields that the spec sets
  std::string backbone;               // reward backbone's model name, "" where none
  std::string policy;                 // policy's model name, "" where none
  std::string decoding;               // "args", "" where none
  std::optional<double> weight;       // of the decoder, where it has one
  std::optional<std::uint64_t> seed;  // as listed in the spec
  std::string user;                   // "" for a job that serves all users
  std::string user_group;             // "seen", "unseen", ""
};

struct PlannedJob {
  JobSpec spec;
  JobKey key;
  std::string stage;                        // "pretrain", "embed", "train", "adapt", ...
  std::vector<std::uint32_t> dependencies;  // indices of earlier jobs of this plan
  std::uint64_t affinity = 0;               // equal: they profit from the same executor
  std::vector<CellLabel> cells;             // places in the tables that this job fills
};

class PlannedJobs {
 public:
  using Index = std::uint32_t;
  using ShapeId = std::uint32_t;
  using UserId = std::uint32_t;

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  void reserve(std::size_t jobs) { entries_.reserve(jobs); }

  PlannedJob operator[](std::size_t index) const;
  const JobKey& key(std::size_t index) const { return entries_[index].key; }
  std::uint64_t affinity(std::size_t index) const { return entries_[index].affinity; }
  const std::string& stage(std::size_t index) const { return shape(index).stage; }
  const std::string& kind(std::size_t index) const { return shape(index).spec.kind; }
  std::uint32_t kind_version(std::size_t index) const { return shape(index).spec.kind_version; }
  std::vector<Index> dependencies(std::size_t index) const;

  void push_back(PlannedJob job);

  // --- many jobs of one shape ---
  // `shape`: a job without a user, whose key and affinity do not matter.
  ShapeId add_shape(PlannedJob shape);
  UserId add_user(std::string user);
  struct OfUser {
    ShapeId shape = 0;
    JobKey key;
    UserId user = 0;             // becomes the parameter `user`, and the user of every cell
    std::optional<Index> adapt;  // the job that becomes the input `adapt`
    std::uint64_t affinity = 0;
  };
  void add(const OfUser& job);
  // The job also fills the cells of this shape.
  void add_cells(std::size_t index, ShapeId shape);

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = PlannedJob;
    using difference_type = std::ptrdiff_t;
    using pointer = const PlannedJob*;
    using reference = PlannedJob;

    Iterator(const PlannedJobs& jobs, std::size_t index) : jobs_(&jobs), index_(index) {}
    PlannedJob operator*() const { return (*jobs_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const PlannedJobs* jobs_;
    std::size_t index_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Entry {
    JobKey key;
    std::uint64_t affinity = 0;
    ShapeId shape = 0;
    UserId user = none;
    Index adapt = none;
  };
  static_assert(sizeof(Entry) == 56, "a million jobs are to fit into a gibibyte many times");
  const PlannedJob& shape(std::size_t index) const { return shapes_[entries_[index].shape]; }

  std::vector<Entry> entries_;
  std::vector<PlannedJob> shapes_;
  std::vector<std::string> users_;
  // Shapes of jobs that fill the cells of two others.
  std::map<std::pair<ShapeId, ShapeId>, ShapeId> merged_;
};

}  // namespace prefgrid
