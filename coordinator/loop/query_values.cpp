#include "coordinator/loop/query_values.h"

#include <array>

#include "common/text.h"

namespace prefgrid {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

Value number(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

Value counts_value(const JobCounts& counts) {
  return ValueMap{{"total", number(counts.total)},         {"waiting", number(counts.waiting)},
                  {"ready", number(counts.ready)},         {"running", number(counts.running)},
                  {"retrying", number(counts.retrying)},   {"done", number(counts.done)},
                  {"failed", number(counts.failed)},       {"blocked", number(counts.blocked)},
                  {"cancelled", number(counts.cancelled)}, {"reused", number(counts.reused)}};
}

// One line of text that tells the event's own content, "" where the name says all.
std::string event_detail(const EventFact& event) {
  return std::visit(Overloaded{[](const history::Submitted& it) { return it.experiment; },
                               [](const history::Failed& it) {
                                 return std::string(to_string(it.failure.failure_class)) + ": " +
                                        it.failure.message;
                               },
                               [](const history::ResultDropped& it) { return it.reason; },
                               [](const history::WorkerJoined& it) { return it.host; },
                               [](const history::WorkerLeft& it) { return it.reason; },
                               [](const auto&) { return std::string(); }},
                    event.what);
}

}  // namespace

std::string to_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t length = 0;
    for (std::size_t candidate = 1; candidate <= 4 && at + candidate <= bytes.size(); ++candidate) {
      if (valid_utf8(bytes.substr(at, candidate))) {
        length = candidate;
        break;
      }
    }
    text += length > 0 ? bytes.substr(at, length) : std::string_view("\xEF\xBF\xBD");
    at += length > 0 ? length : 1;
  }
  return text;
}

const char* event_name(const EventFact& event) {
  constexpr std::array names{"submitted",     "leased",      "done",           "failed",
                             "quarantined",   "lease_lost",  "lease_returned", "result_dropped",
                             "worker_joined", "worker_left", "cancelled",      "retried"};
  static_assert(names.size() == std::variant_size_v<decltype(EventFact::what)>);
  return names[event.what.index()];
}

Value event_value(const StoredEvent& stored) {
  const EventFact& event = stored.event;
  ValueMap value{{"sequence", number(stored.sequence)},
                 {"time_ms", static_cast<std::int64_t>(event.wall)},
                 {"what", event_name(event)}};
  if (event.job) value["job"] = event.job->hex();
  if (event.attempt > 0) value["attempt"] = number(event.attempt);
  if (!event.worker.empty()) value["worker"] = event.worker;
  const std::string detail = event_detail(event);
  if (!detail.empty()) value["detail"] = to_utf8(detail);
  return value;
}

Value workers_value(const Core& core) {
  ValueList list;
  for (const WorkerView& worker : core.workers()) {
    list.push_back(ValueMap{{"name", worker.name},
                            {"host", worker.host},
                            {"pid", number(worker.pid)},
                            {"connected", worker.peer.has_value()},
                            {"executors", number(worker.executors)},
                            {"leases", number(worker.leases)},
                            {"silent_ms", worker.silent_ms},
                            {"draining", worker.draining},
                            {"waits_for", to_utf8(worker.waits_for)},
                            {"device", worker.profile.device},
                            {"library", worker.profile.library}});
  }
  return list;
}

Value counters_value(const Views& views) {
  const CoreCounters counters = views.core.counters();
  return ValueMap{{"leases_granted", number(counters.leases_granted)},
                  {"results_committed", number(counters.results_committed)},
                  {"results_dropped", number(counters.results_dropped)},
                  {"leases_lost", number(counters.leases_lost)},
                  {"failures_charged", number(counters.failures_charged)},
                  {"bad_frames", number(views.loop.bad_frames)}};
}

Value profiles_value(const Core& core) {
  ValueList list;
  for (const auto& [profile, count] : core.result_profiles()) {
    list.push_back(ValueMap{{"device", profile.device},
                            {"library", profile.library},
                            {"blas_kernel", profile.blas_kernel},
                            {"cpu_capability", profile.cpu_capability},
                            {"threads", number(profile.threads)},
                            {"dtype", profile.dtype},
                            {"results", number(count)}});
  }
  return list;
}

Value failures_value(const FailureCounts& failures) {
  ValueMap value;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (failures[i] > 0) value[to_string(static_cast<FailureClass>(i))] = number(failures[i]);
  }
  return value;
}

Value progress_of_job_value(const Progress& progress) {
  ValueMap value{{"step", number(progress.step)}, {"total_steps", number(progress.total_steps)}};
  if (progress.loss_nats) value["loss_nats"] = *progress.loss_nats;
  return value;
}

Value result_value(const ResultFact& fact) {
  ValueList metrics;
  for (const Metric& metric : fact.result.metrics) {
    ValueMap value{{"name", metric.name},
                   {"sum", metric.sum},
                   {"count", number(metric.count)},
                   {"missing", number(metric.missing)}};
    if (metric.weight) value["weight"] = *metric.weight;
    metrics.push_back(std::move(value));
  }
  ValueList artifacts;
  for (const ArtifactRef& artifact : fact.result.artifacts) {
    artifacts.push_back(ValueMap{{"name", artifact.name},
                                 {"digest", artifact.digest.hex()},
                                 {"size", number(artifact.size)}});
  }
  return ValueMap{{"metrics", std::move(metrics)},
                  {"artifacts", std::move(artifacts)},
                  {"attempt", number(fact.attempt)},
                  {"worker", fact.worker},
                  {"committed_ms", static_cast<std::int64_t>(fact.committed)},
                  {"duration_ms", number(fact.result.duration_ms)}};
}

ValueMap job_spec_value(const PlannedJob& job) {
  ValueMap inputs;
  for (const auto& [name, input] : job.spec.inputs) {
    const auto* const maker = std::get_if<JobKey>(&input);
    inputs[name] =
        maker != nullptr ? "job " + maker->hex() : "file " + std::get<ArtifactDigest>(input).hex();
  }
  ValueMap value{{"job", job.key.hex()},
                 {"kind", job.spec.kind},
                 {"kind_version", number(job.spec.kind_version)},
                 {"stage", job.stage},
                 {"parameters", job.spec.parameters},
                 {"inputs", std::move(inputs)}};
  if (job.spec.seed) value["seed"] = std::to_string(*job.spec.seed);
  return value;
}

Value progress_value(const BookedExperiment& experiment, const Views& views) {
  const ExperimentRecord& record = experiment.record;
  ValueMap value{{"id", number(static_cast<std::uint32_t>(record.id))},
                 {"name", record.name},
                 {"priority", std::int64_t{record.priority}},
                 {"submitted_ms", static_cast<std::int64_t>(record.submitted)}};
  if (!views.core.knows(record.id)) {
    value["problem"] = to_utf8(experiment.problem);
    value["finished"] = true;
    return value;
  }
  constexpr std::size_t shown_failures = 5;
  const ExperimentProgress progress = views.core.progress(record.id);
  value["cancelled"] = progress.cancelled;
  value["finished"] = progress.finished;
  value["counts"] = counts_value(progress.counts);
  ValueList stages;
  for (const StageProgress& stage : progress.stages) {
    stages.push_back(ValueMap{{"stage", stage.stage}, {"counts", counts_value(stage.counts)}});
  }
  value["stages"] = std::move(stages);
  ValueList failed;
  for (const FailedJob& job : views.core.failed_jobs(record.id, shown_failures)) {
    failed.push_back(ValueMap{{"job", job.job.hex()}, {"message", to_utf8(job.message)}});
  }
  value["failed_jobs"] = std::move(failed);
  return value;
}

}  // namespace prefgrid
