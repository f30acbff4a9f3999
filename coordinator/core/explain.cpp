// What a person wants to know: views of the tables, and why a job does not run.
#include <algorithm>

#include "common/check.h"
#include "coordinator/core/core_impl.h"

namespace prefgrid {
namespace {

constexpr std::size_t inputs_named = 3;

std::string state_name(const JobState& state) {
  switch (state.index()) {
    case 0:
      return is_dead(state) ? "blocked" : "waiting";
    case 1:
      return "ready";
    case 2:
      return "leased";
    case 3:
      return "failed";
    case 4:
      return "done";
    case 5:
      return "quarantined";
    default:
      return "cancelled";
  }
}

// As people read it, see docs/cli.md.
std::string spoken_name(const JobState& state) {
  if (std::holds_alternative<job_state::Leased>(state)) return "running";
  const std::string name = state_name(state);
  return name == "failed" ? "retrying" : name == "quarantined" ? "failed" : name;
}

std::string seconds(std::int64_t ms) {
  return std::to_string((std::max<std::int64_t>(ms, 0) + 999) / 1'000) + " s";
}

WorkerView view(const Worker& worker, MonotonicMs now) {
  return WorkerView{.name = worker.name,
                    .host = worker.host,
                    .pid = worker.pid,
                    .peer = worker.peer,
                    .executors = worker.executors,
                    .leases = worker.leases,
                    .silent_ms = now - worker.last_heard,
                    .draining = worker.draining,
                    .waits_for = worker.waits_for,
                    .profile = worker.profile};
}

}  // namespace

std::string Core::Impl::describe_job(JobIndex index) const {
  const Job& job = table[index];
  const std::string kind = job.planned ? table.kinds()[job.kind].kind : "job";
  std::string text = kind + " " + job.key.short_hex() + " (" + spoken_name(job.state);
  const auto problem = problems.find(index);
  if (problem != problems.end()) text += ": " + problem->second;
  return text + ")";
}

std::string Core::Impl::why_waiting_for_inputs(JobIndex index) const {
  const bool blocked = is_dead(table[index].state);
  std::string text = blocked ? "an input will not come: " : "waits for ";
  std::size_t named = 0;
  std::size_t more = 0;
  for (const JobIndex input : table.inputs(index)) {
    const JobState& state = table[input].state;
    if (std::holds_alternative<job_state::Done>(state)) continue;
    if (blocked && !is_dead(state)) continue;
    if (named == inputs_named) {
      ++more;
      continue;
    }
    text += (named++ == 0 ? "" : ", ") + describe_job(input);
  }
  if (named == 0) return "no experiment of this run wants it";
  return more == 0 ? text : text + " and " + std::to_string(more) + " more";
}

std::string Core::Impl::why_not_leased(JobIndex index) const {
  const KindVersion& kind = table.kinds()[table[index].kind];
  if (!table.wanted(index)) return "every experiment that wants it is cancelled";
  std::size_t connected = 0;
  std::size_t able = 0;
  std::size_t taking = 0;
  std::size_t waiting = 0;
  std::set<std::uint32_t> other_versions;
  for (WorkerSlot slot = 0; slot < workers.slots(); ++slot) {
    const Worker& worker = workers[slot];
    if (!worker.live || !worker.peer) continue;
    ++connected;
    const bool can = std::ranges::binary_search(worker.kinds, table[index].kind);
    if (can) ++able;
    if (can && !worker.waits_for.empty()) ++waiting;
    if (can && takes_leases(worker)) ++taking;
    for (const KindVersion& offer : worker.offers) {
      if (offer.kind == kind.kind && offer.version != kind.version) {
        other_versions.insert(offer.version);
      }
    }
  }
  if (connected == 0) return "ready; no worker is connected";
  if (able == 0) {
    std::string text = "ready, but none of " + std::to_string(connected) + " workers runs " +
                       kind.kind + " version " + std::to_string(kind.version);
    for (const std::uint32_t version : other_versions) {
      text += (version == *other_versions.begin() ? "; they have version " : ", ") +
              std::to_string(version);
    }
    return text;
  }
  if (waiting == able) return "ready; the workers that can run it wait for room on their disks";
  if (taking == 0) return "ready; the workers that can run it are draining or leaving";
  if (runs_alone(table[index])) {
    return "ready; an earlier attempt ended with its worker or executor, so it waits for a worker "
           "with nothing else to run";
  }
  return "ready; behind more urgent jobs, " + std::to_string(able) + " of " +
         std::to_string(connected) + " workers can run it";
}

std::string Core::Impl::why_waiting(JobIndex index) const {
  const Job& job = table[index];
  const auto problem = problems.find(index);
  const std::string last = problem == problems.end() ? "" : problem->second;
  if (std::holds_alternative<job_state::Waiting>(job.state)) return why_waiting_for_inputs(index);
  if (std::holds_alternative<job_state::Ready>(job.state)) return why_not_leased(index);
  if (const auto* leased = std::get_if<job_state::Leased>(&job.state)) {
    const LeaseEntry& lease = workers.lease(leased->lease);
    const Worker& worker = workers[lease.worker];
    std::string text = "running on worker " + worker.name + " for " + seconds(now - lease.given) +
                       ", attempt " + std::to_string(lease.attempt);
    if (!worker.peer) text += "; the worker has not come back since the coordinator restarted";
    return text;
  }
  if (std::holds_alternative<job_state::Failed>(job.state)) {
    return "attempt " + std::to_string(job.attempt) + " failed and is tried again soon: " + last;
  }
  if (std::holds_alternative<job_state::Quarantined>(job.state)) {
    return "failed too often, and is not tried again. Last: " + last;
  }
  if (std::holds_alternative<job_state::Cancelled>(job.state)) return "cancelled";
  return "";
}

std::vector<ExperimentId> Core::experiments() const {
  std::vector<ExperimentId> ids;
  for (const auto& experiment : impl_->table.experiments()) ids.push_back(experiment.id);
  return ids;
}

bool Core::knows(ExperimentId id) const {
  return impl_->table.find_experiment(id).has_value();
}

ExperimentProgress Core::progress(ExperimentId id) const {
  const auto slot = impl_->table.find_experiment(id);
  PREFGRID_CHECK(slot.has_value(), "unknown experiment");
  const JobTable::Experiment& experiment = impl_->table.experiments()[*slot];
  return ExperimentProgress{.id = id,
                            .name = experiment.name,
                            .priority = experiment.priority,
                            .cancelled = experiment.cancelled,
                            .finished = finished(id),
                            .counts = experiment.counts,
                            .stages = experiment.stages};
}

bool Core::finished(ExperimentId id) const {
  const auto slot = impl_->table.find_experiment(id);
  PREFGRID_CHECK(slot.has_value(), "unknown experiment");
  const JobTable::Experiment& experiment = impl_->table.experiments()[*slot];
  const JobCounts& counts = experiment.counts;
  return experiment.cancelled ||
         counts.waiting + counts.ready + counts.running + counts.retrying == 0;
}

std::vector<FailedJob> Core::failed_jobs(ExperimentId id, std::size_t limit) const {
  const auto slot = impl_->table.find_experiment(id);
  PREFGRID_CHECK(slot.has_value(), "unknown experiment");
  std::vector<FailedJob> found;
  for (const auto& [job, message] : impl_->problems) {
    if (found.size() == limit) break;
    if (std::holds_alternative<job_state::Quarantined>(impl_->table[job].state) &&
        impl_->table.belongs_to(job, *slot)) {
      found.push_back({impl_->table[job].key, message});
    }
  }
  return found;
}

std::optional<JobView> Core::job(const JobKey& key) const {
  const auto index = impl_->table.find(key);
  if (!index) return std::nullopt;
  const Job& job = impl_->table[*index];
  JobView found;
  found.state = state_name(job.state);
  found.attempt = job.attempt;
  std::copy(job.failures.begin(), job.failures.end(), found.failures.begin());
  const auto problem = impl_->problems.find(*index);
  if (problem != impl_->problems.end()) found.problem = problem->second;
  if (const auto* leased = std::get_if<job_state::Leased>(&job.state)) {
    const LeaseEntry& lease = impl_->workers.lease(leased->lease);
    found.worker = impl_->workers[lease.worker].name;
    found.progress = lease.progress;
  }
  return found;
}

std::string Core::why_waiting(const JobKey& key) const {
  const auto index = impl_->table.find(key);
  return index ? impl_->why_waiting(*index) : "";
}

std::vector<WorkerView> Core::workers() const {
  std::vector<WorkerView> found;
  for (WorkerSlot slot = 0; slot < impl_->workers.slots(); ++slot) {
    if (impl_->workers[slot].live) found.push_back(view(impl_->workers[slot], impl_->now));
  }
  return found;
}

std::optional<WorkerView> Core::holder(const std::string& worker_name) const {
  const auto slot = impl_->workers.by_name(worker_name);
  if (!slot) return std::nullopt;
  return view(impl_->workers[*slot], impl_->now);
}

}  // namespace prefgrid
