#include "coordinator/loop/queries.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base64.h"
#include "common/messages.h"
#include "common/text.h"
#include "coordinator/loop/query_values.h"

namespace prefgrid {
namespace {

constexpr std::size_t shortest_prefix = 4;
constexpr std::int64_t most_events = 10'000;

Result<Value> ping(const ValueMap&, const Views& views) {
  return Value(ValueMap{{"software_version", PREFGRID_VERSION},
                        {"protocol_version", std::int64_t{protocol_version}},
                        {"pid", static_cast<std::int64_t>(::getpid())},
                        {"store", views.store.folder().string()},
                        {"bulk_endpoint", views.loop.bulk_endpoint},
                        {"live", views.loop.live}});
}

Result<Value> status(const ValueMap& arguments, const Views& views) {
  ValueList experiments;
  if (arguments.contains("experiment")) {
    PREFGRID_ASSIGN(const auto* const wanted, wanted_experiment(arguments, views));
    experiments.push_back(progress_value(*wanted, views));
  } else {
    for (const auto& [id, experiment] : views.book.all()) {
      experiments.push_back(progress_value(experiment, views));
    }
  }
  return Value(ValueMap{{"experiments", std::move(experiments)},
                        {"workers", workers_value(views.core)},
                        {"counters", counters_value(views)},
                        {"profiles", profiles_value(views.core)},
                        {"disk_full", views.loop.disk_full},
                        {"live", views.loop.live}});
}

Result<Value> workers(const ValueMap&, const Views& views) {
  return Value(ValueMap{{"workers", workers_value(views.core)}});
}

Result<Value> explain(const ValueMap& arguments, const Views& views) {
  PREFGRID_ASSIGN(const BookedJob wanted, wanted_job(arguments, views));
  ValueMap answer = job_spec_value(*wanted.job);
  answer["experiment"] = views.book.find(wanted.experiment)->record.name;
  const JobKey& key = wanted.job->key;
  if (const auto view = views.core.job(key)) {
    answer["state"] = view->state;
    answer["attempt"] = std::int64_t{view->attempt};
    answer["failures"] = failures_value(view->failures);
    if (!view->worker.empty()) answer["worker"] = view->worker;
    if (!view->problem.empty()) answer["problem"] = to_utf8(view->problem);
    if (view->progress) answer["progress"] = progress_of_job_value(*view->progress);
  }
  const std::string why = views.core.why_waiting(key);
  if (!why.empty()) answer["why_waiting"] = to_utf8(why);
  PREFGRID_ASSIGN(const auto stored, views.store.result(key));
  if (stored) answer["result"] = result_value(*stored);
  PREFGRID_ASSIGN(const auto events, views.store.events_of(key));
  ValueList history;
  for (const StoredEvent& event : events) history.push_back(event_value(event));
  answer["events"] = std::move(history);
  return Value(std::move(answer));
}

// One of the files that a job made: {digest, size}, and content_base64 where the result holds it.
Result<Value> artifact(const ValueMap& arguments, const Views& views) {
  PREFGRID_ASSIGN(const BookedJob wanted, wanted_job(arguments, views));
  PREFGRID_ASSIGN(const std::string name, text_argument(arguments, "name"));
  PREFGRID_ASSIGN(const auto stored, views.store.result(wanted.job->key));
  std::string known;
  for (const ArtifactRef& made : stored ? stored->result.artifacts : std::vector<ArtifactRef>{}) {
    known += (known.empty() ? "" : ", ") + made.name;
    if (made.name != name) continue;
    ValueMap answer{{"digest", made.digest.hex()}, {"size", static_cast<std::int64_t>(made.size)}};
    if (made.inline_data) answer["content_base64"] = to_base64(*made.inline_data);
    return Value(std::move(answer));
  }
  return Error{ErrorCode::not_found, "the job has no artefact " + quoted(name) +
                                         "; it has: " + (known.empty() ? "none" : known)};
}

Result<Value> events(const ValueMap& arguments, const Views& views) {
  PREFGRID_ASSIGN(const std::int64_t from, integer_argument(arguments, "from", 0));
  PREFGRID_ASSIGN(const std::int64_t limit, integer_argument(arguments, "limit", most_events));
  ValueList list;
  if (arguments.contains("job")) {
    PREFGRID_ASSIGN(const BookedJob wanted, wanted_job(arguments, views));
    PREFGRID_ASSIGN(const auto stored, views.store.events_of(wanted.job->key));
    for (const StoredEvent& event : stored) list.push_back(event_value(event));
  } else {
    const auto most = static_cast<std::size_t>(std::clamp<std::int64_t>(limit, 1, most_events));
    const auto first = static_cast<std::uint64_t>(std::max<std::int64_t>(from, 0));
    PREFGRID_TRY(views.store.each_event(first, [&](const StoredEvent& event) {
      list.push_back(event_value(event));
      return Result<bool>(list.size() < most);
    }));
  }
  return Value(ValueMap{{"events", std::move(list)},
                        {"last", static_cast<std::int64_t>(views.store.sequence().last_event)}});
}

// How often each job was started and ended: what shows that nothing ran twice.
Result<Value> executions(const ValueMap& arguments, const Views& views) {
  std::map<JobKey, std::map<std::string, std::int64_t>> counts;
  if (arguments.contains("experiment")) {
    PREFGRID_ASSIGN(const auto* const wanted, wanted_experiment(arguments, views));
    if (wanted->plan) {
      const PlannedJobs& planned = wanted->plan->jobs;
      for (std::size_t i = 0; i < planned.size(); ++i) counts[planned.key(i)];
    }
  }
  const bool all = counts.empty();
  PREFGRID_TRY(views.store.each_event(0, [&](const StoredEvent& event) {
    if (!event.event.job || (!all && !counts.contains(*event.event.job))) return Result<bool>(true);
    ++counts[*event.event.job][event_name(event.event)];
    return Result<bool>(true);
  }));
  ValueMap jobs;
  for (const auto& [key, names] : counts) {
    ValueMap of_job;
    for (const auto& [name, count] : names) of_job[name] = count;
    jobs[key.hex()] = std::move(of_job);
  }
  return Value(ValueMap{{"jobs", std::move(jobs)}});
}

Result<Value> logs(const ValueMap& arguments, const Views& views) {
  PREFGRID_ASSIGN(const BookedJob wanted, wanted_job(arguments, views));
  PREFGRID_ASSIGN(const auto log, views.store.log(wanted.job->key));
  if (!log) {
    return Error{ErrorCode::not_found,
                 "job " + wanted.job->key.short_hex() + " has written nothing to its log"};
  }
  return Value(ValueMap{{"job", wanted.job->key.hex()}, {"log", to_utf8(*log)}});
}

Result<Value> spec(const ValueMap& arguments, const Views& views) {
  PREFGRID_ASSIGN(const auto* const wanted, wanted_experiment(arguments, views));
  const ExperimentRecord& record = wanted->record;
  return Value(ValueMap{{"id", std::int64_t{static_cast<std::uint32_t>(record.id)}},
                        {"name", record.name},
                        {"spec", record.spec},
                        {"spec_text", record.spec_text},
                        {"dataset", record.dataset},
                        {"dataset_digest", record.dataset_digest.hex()}});
}

}  // namespace

QueryTable standard_queries() {
  return {
      {"ping", ping},         {"status", status}, {"workers", workers},       {"explain", explain},
      {"artifact", artifact}, {"events", events}, {"executions", executions}, {"logs", logs},
      {"spec", spec}};
}

Result<Value> answer(const QueryTable& table, const std::string& verb, const ValueMap& arguments,
                     const Views& views) {
  const auto query = table.find(verb);
  if (query != table.end()) return query->second(arguments, views);
  std::string known;
  for (const auto& [name, unused] : table) known += (known.empty() ? "" : ", ") + name;
  return invalid_input("unknown verb " + quoted(verb) + "; known: " + known);
}

Result<std::string> text_argument(const ValueMap& arguments, const std::string& name) {
  const auto found = arguments.find(name);
  if (found == arguments.end()) return invalid_input("the argument " + name + " is missing");
  const auto* const text = std::get_if<std::string>(&found->second);
  if (text == nullptr) return invalid_input("the argument " + name + " is not a text");
  return *text;
}

Result<std::int64_t> integer_argument(const ValueMap& arguments, const std::string& name,
                                      std::int64_t otherwise) {
  const auto found = arguments.find(name);
  if (found == arguments.end()) return otherwise;
  const auto* const number = std::get_if<std::int64_t>(&found->second);
  if (number == nullptr) return invalid_input("the argument " + name + " is not an integer");
  return *number;
}

Result<const BookedExperiment*> wanted_experiment(const ValueMap& arguments, const Views& views) {
  const auto& all = views.book.all();
  const auto given = arguments.find("experiment");
  if (given == arguments.end()) {
    if (all.empty()) return Error{ErrorCode::not_found, "the store has no experiment yet"};
    return &all.rbegin()->second;
  }
  const BookedExperiment* found = nullptr;
  std::string wanted;
  if (const auto* id = std::get_if<std::int64_t>(&given->second)) {
    wanted = std::to_string(*id);
    if (*id >= 0 && *id <= UINT32_MAX) {
      found = views.book.find(ExperimentId{static_cast<std::uint32_t>(*id)});
    }
  } else if (const auto* name = std::get_if<std::string>(&given->second)) {
    wanted = quoted(*name);
    found = views.book.find(*name);
  } else {
    return invalid_input("the argument experiment is neither a name nor a number");
  }
  if (found != nullptr) return found;
  std::string known;
  for (const auto& [id, experiment] : all) {
    known += (known.empty() ? "" : ", ") + std::to_string(static_cast<std::uint32_t>(id)) + " " +
             experiment.record.name;
  }
  return Error{ErrorCode::not_found, "no experiment " + wanted + "; there are: " +
                                         (known.empty() ? std::string("none") : known)};
}

Result<BookedJob> wanted_job(const ValueMap& arguments, const Views& views) {
  PREFGRID_ASSIGN(std::string prefix, text_argument(arguments, "job"));
  std::transform(prefix.begin(), prefix.end(), prefix.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (prefix.size() < shortest_prefix || prefix.size() > 64 ||
      prefix.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return invalid_input("a job is named by 4 to 64 hexadecimal digits of its key, not by " +
                         quoted(prefix));
  }
  auto found = views.book.jobs_by_prefix(prefix, 2);
  if (found.empty()) return Error{ErrorCode::not_found, "no job's key starts with " + prefix};
  if (found.size() > 1) {
    return invalid_input("several jobs' keys start with " + prefix + ", e.g. " +
                         found[0].job->key.hex() + " and " + found[1].job->key.hex());
  }
  return found[0];
}

std::optional<JobResult> result_of(const Views& views, const JobKey& key) {
  auto stored = views.store.result(key);
  if (!stored.ok()) {
    spdlog::error("{}", stored.error().message);
    return std::nullopt;
  }
  if (!*stored) return std::nullopt;
  return std::move((*stored)->result);
}

std::string why_missing(const Views& views, const JobKey& key) {
  const auto view = views.core.job(key);
  if (!view) return "not planned";
  if (!view->problem.empty()) return to_utf8(view->problem);
  const std::string why = views.core.why_waiting(key);
  return why.empty() ? view->state : to_utf8(why);
}

Result<std::unique_ptr<OfflineViews>> OfflineViews::open(const std::filesystem::path& folder,
                                                         const Planner& planner) {
  PREFGRID_ASSIGN(auto store, Store::open_read_only(folder));
  PREFGRID_ASSIGN(Restored restored,
                  restore(*store, planner, CoreOptions{}, monotonic_now(), wall_now()));
  return std::unique_ptr<OfflineViews>(new OfflineViews(std::move(store), std::move(restored)));
}

}  // namespace prefgrid
