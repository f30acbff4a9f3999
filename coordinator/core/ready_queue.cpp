#include "coordinator/core/ready_queue.h"

#include <algorithm>

#include "common/check.h"

namespace prefgrid {

bool ReadyQueue::current(JobIndex index, std::uint16_t kind, Urgency urgency) const {
  const Job& job = table_[index];
  return std::holds_alternative<job_state::Ready>(job.state) && job.kind == kind &&
         !runs_alone(job) && table_.urgency(index) == urgency;
}

ReadyQueue::Level* ReadyQueue::level(std::uint16_t kind, Urgency urgency) {
  if (kind >= kinds_.size()) return nullptr;
  const auto found = kinds_[kind].find(urgency);
  return found == kinds_[kind].end() ? nullptr : &found->second;
}

void ReadyQueue::push(JobIndex index) {
  const Job& job = table_[index];
  const auto urgency = table_.urgency(index);
  PREFGRID_CHECK(urgency.has_value(), "nobody wants job " + job.key.hex());
  if (job.kind >= kinds_.size()) kinds_.resize(job.kind + std::size_t{1});
  Level& level = kinds_[job.kind][*urgency];
  const auto [found, is_new] = level.by_affinity.try_emplace(job.affinity, next_number_);
  if (is_new) level.lines[next_number_++].affinity = job.affinity;
  level.lines.at(found->second).jobs.push_back(index);
}

bool ReadyQueue::settle(Level& level, std::map<std::uint64_t, Line>::iterator found,
                        std::uint16_t kind, Urgency urgency) {
  Line& line = found->second;
  while (line.head < line.jobs.size() && !current(line.jobs[line.head], kind, urgency)) {
    ++line.head;
  }
  if (line.head == line.jobs.size()) {
    level.by_affinity.erase(line.affinity);
    level.lines.erase(found);
    return false;
  }
  if (line.head >= 1'024 && 2 * line.head >= line.jobs.size()) {
    line.jobs.erase(line.jobs.begin(), line.jobs.begin() + static_cast<std::ptrdiff_t>(line.head));
    line.head = 0;
  }
  return true;
}

std::optional<Urgency> ReadyQueue::best(std::uint16_t kind) {
  if (kind >= kinds_.size()) return std::nullopt;
  Levels& levels = kinds_[kind];
  while (!levels.empty()) {
    const auto top = levels.begin();
    auto& lines = top->second.lines;
    while (!lines.empty()) {
      if (settle(top->second, lines.begin(), kind, top->first)) return top->first;
    }
    levels.erase(top);
  }
  return std::nullopt;
}

std::vector<ReadyQueue::Group> ReadyQueue::groups(std::uint16_t kind, Urgency urgency,
                                                  std::size_t limit) {
  std::vector<Group> found;
  Level* const at = level(kind, urgency);
  if (at == nullptr) return found;
  for (auto line = at->lines.begin(); line != at->lines.end() && found.size() < limit;) {
    const auto here = line++;
    const Group group{kind, urgency, here->first, here->second.affinity, here->second.passed_over};
    if (settle(*at, here, kind, urgency)) found.push_back(group);
  }
  return found;
}

std::optional<ReadyQueue::Group> ReadyQueue::group_of(std::uint16_t kind, Urgency urgency,
                                                      std::uint64_t affinity) {
  Level* const at = level(kind, urgency);
  if (at == nullptr) return std::nullopt;
  const auto found = at->by_affinity.find(affinity);
  if (found == at->by_affinity.end()) return std::nullopt;
  const std::uint64_t number = found->second;
  if (!settle(*at, at->lines.find(number), kind, urgency)) return std::nullopt;
  return Group{kind, urgency, number, affinity, at->lines.at(number).passed_over};
}

void ReadyQueue::pass_over(const Group& group) {
  ++kinds_[group.kind].at(group.urgency).lines.at(group.number).passed_over;
}

std::vector<JobIndex> ReadyQueue::take(const Group& group, std::size_t limit) {
  std::vector<JobIndex> taken;
  Level* const at = level(group.kind, group.urgency);
  if (at == nullptr) return taken;
  const auto found = at->lines.find(group.number);
  if (found == at->lines.end()) return taken;
  Line& line = found->second;
  line.passed_over = 0;
  while (taken.size() < limit && line.head < line.jobs.size()) {
    const JobIndex job = line.jobs[line.head++];
    // A job can stand here twice: only once per call.
    if (current(job, group.kind, group.urgency) &&
        std::find(taken.begin(), taken.end(), job) == taken.end()) {
      taken.push_back(job);
    }
  }
  settle(*at, found, group.kind, group.urgency);
  return taken;
}

bool ReadyQueue::holds(JobIndex index) const {
  const Job& job = table_[index];
  const auto urgency = table_.urgency(index);
  if (!urgency || job.kind >= kinds_.size()) return false;
  const auto level = kinds_[job.kind].find(*urgency);
  if (level == kinds_[job.kind].end()) return false;
  const auto number = level->second.by_affinity.find(job.affinity);
  if (number == level->second.by_affinity.end()) return false;
  const Line& line = level->second.lines.at(number->second);
  return std::find(line.jobs.begin() + static_cast<std::ptrdiff_t>(line.head), line.jobs.end(),
                   index) != line.jobs.end();
}

std::size_t ReadyQueue::memory_bytes() const {
  std::size_t bytes = 0;
  for (const Levels& levels : kinds_) {
    for (const auto& [urgency, level] : levels) {
      for (const auto& [number, line] : level.lines) {
        // A tree node, a hash node and a bucket besides the entries.
        bytes += sizeof line + 32 + 40 + line.jobs.capacity() * sizeof(JobIndex);
      }
    }
  }
  return bytes;
}

}  // namespace prefgrid
