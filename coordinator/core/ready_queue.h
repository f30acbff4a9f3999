// Ready jobs in the order in which they should go out: by kind, then urgency, then groups of equal
// affinity, first come first served. Entries are never searched for: one whose job has moved on is
// skipped when its turn comes, so every operation is O(log n) amortised.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "coordinator/core/job_table.h"

namespace prefgrid {

class ReadyQueue {
 public:
  // A group of jobs of one kind, urgency and affinity.
  struct Group {
    std::uint16_t kind = 0;
    Urgency urgency;
    std::uint64_t number = 0;  // grows with arrival: smaller = has waited longer
    std::uint64_t affinity = 0;
    std::uint32_t passed_over = 0;  // how often younger ones were preferred
  };

  explicit ReadyQueue(const JobTable& table) : table_(table) {}

  // Precondition: the job is ready and wanted, and need not run alone.
  void push(JobIndex job);
  // The urgency of the most urgent job of that kind.
  std::optional<Urgency> best(std::uint16_t kind);
  // Groups of a level that have jobs, oldest first; at most `limit`.
  std::vector<Group> groups(std::uint16_t kind, Urgency urgency, std::size_t limit);
  std::optional<Group> group_of(std::uint16_t kind, Urgency urgency, std::uint64_t affinity);
  void pass_over(const Group& group);
  // The next jobs of the group, at most `limit`.
  std::vector<JobIndex> take(const Group& group, std::size_t limit);
  // Whether one of its entries will hand out the job. O(entries): for checks.
  bool holds(JobIndex job) const;
  std::size_t memory_bytes() const;

 private:
  struct Line {
    std::uint64_t affinity = 0;
    std::vector<JobIndex> jobs;
    std::size_t head = 0;
    std::uint32_t passed_over = 0;
  };
  struct Level {
    std::map<std::uint64_t, Line> lines;  // by number
    std::unordered_map<std::uint64_t, std::uint64_t> by_affinity;
  };
  using Levels = std::map<Urgency, Level, std::greater<>>;

  bool current(JobIndex job, std::uint16_t kind, Urgency urgency) const;
  // Drops entries that are out of date; false: none is left, and the line is gone.
  bool settle(Level& level, std::map<std::uint64_t, Line>::iterator line, std::uint16_t kind,
              Urgency urgency);
  Level* level(std::uint16_t kind, Urgency urgency);

  const JobTable& table_;
  std::vector<Levels> kinds_;
  std::uint64_t next_number_ = 0;
};

}  // namespace prefgrid
