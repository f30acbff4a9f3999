#include "coordinator/cli/cli_queries.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/text.h"
#include "coordinator/report/aggregate.h"

namespace prefgrid {
namespace {

constexpr std::size_t hex_digits = 64;
constexpr std::size_t most_keys = 65'536;         // of one question about standings
constexpr std::int64_t most_jobs_listed = 2'000;  // by one answer: their results are read
constexpr std::size_t most_jobs_seen = 100'000;   // for one answer, so that others wait not long

Result<const Plan*> wanted_plan(const ValueMap& arguments, const Views& views) {
  PREFGRID_ASSIGN(const BookedExperiment* experiment, wanted_experiment(arguments, views));
  if (experiment->plan) return experiment->plan.get();
  return Error{ErrorCode::conflict,
               "experiment " + experiment->record.name +
                   " cannot be expanded by this version: " + experiment->problem};
}

Result<Value> results(const ValueMap& arguments, const Views& views) {
  PREFGRID_ASSIGN(const BookedExperiment* experiment, wanted_experiment(arguments, views));
  PREFGRID_ASSIGN(const Plan* plan, wanted_plan(arguments, views));
  const auto summary = summary_from_value(experiment->record.dataset);
  const std::string dataset = summary.ok() ? summary->name : "";
  const ResultTable table = aggregate(*plan, dataset,
                                      {[&](const JobKey& key) { return result_of(views, key); },
                                       [&](const JobKey& key) { return why_missing(views, key); }});
  return Value(ValueMap{{"table", to_value(table)}, {"spec_text", experiment->record.spec_text}});
}

// --- jobs ---

struct JobFilter {
  std::string state;
  std::string stage;
  std::string user;
};

Result<std::string> filter_argument(const ValueMap& arguments, const std::string& name) {
  if (!arguments.contains(name)) return std::string();
  return text_argument(arguments, name);
}

bool has_user(const PlannedJob& job, const std::string& user) {
  return std::any_of(job.cells.begin(), job.cells.end(),
                     [&](const CellLabel& cell) { return cell.user == user; });
}

Value job_value(const PlannedJob& job, const JobView& view, const Views& views) {
  ValueMap value{{"job", job.key.hex()},
                 {"kind", job.spec.kind},
                 {"stage", job.stage},
                 {"state", shown_state(view.state)},
                 {"attempt", std::int64_t{view.attempt}},
                 {"worker", view.worker}};
  if (!view.problem.empty()) value["problem"] = to_utf8(view.problem);
  if (!job.cells.empty()) {
    const CellLabel& cell = job.cells.front();
    value["method"] = cell.method;
    value["config"] = cell.config;
    value["backbone"] = cell.backbone;
    value["policy"] = cell.policy;
    value["decoding"] = cell.decoding;
    value["user"] = cell.user;
    value["user_group"] = cell.user_group;
    if (cell.weight) value["weight"] = *cell.weight;
    if (cell.seed) value["seed"] = std::to_string(*cell.seed);
  }
  if (view.state != "done") return value;
  const auto stored = views.store.result(job.key);
  if (stored.ok() && *stored) {
    value["worker"] = (*stored)->worker;
    value["duration_ms"] = static_cast<std::int64_t>((*stored)->result.duration_ms);
  }
  return value;
}

Result<Value> jobs(const ValueMap& arguments, const Views& views) {
  PREFGRID_ASSIGN(const Plan* plan, wanted_plan(arguments, views));
  JobFilter filter;
  PREFGRID_ASSIGN(filter.state, filter_argument(arguments, "state"));
  PREFGRID_ASSIGN(filter.stage, filter_argument(arguments, "stage"));
  PREFGRID_ASSIGN(filter.user, filter_argument(arguments, "user"));
  PREFGRID_ASSIGN(const std::int64_t from, integer_argument(arguments, "from", 0));
  const std::size_t first = static_cast<std::size_t>(std::max<std::int64_t>(from, 0));
  ValueList list;
  std::size_t at = first;
  for (; at < plan->jobs.size() && at - first < most_jobs_seen; ++at) {
    if (static_cast<std::int64_t>(list.size()) >= most_jobs_listed) break;
    if (!filter.stage.empty() && plan->jobs.stage(at) != filter.stage) continue;
    const auto view = views.core.job(plan->jobs.key(at));
    if (!view || (!filter.state.empty() && shown_state(view->state) != filter.state)) continue;
    const PlannedJob job = plan->jobs[at];
    if (!filter.user.empty() && !has_user(job, filter.user)) continue;
    list.push_back(job_value(job, *view, views));
  }
  ValueMap answer{{"jobs", std::move(list)}};
  if (at < plan->jobs.size()) answer["next"] = static_cast<std::int64_t>(at);
  return Value(std::move(answer));
}

// --- standings ---

// Of each key: 'd' done, 'f' failed for good, '-' anything else.
Result<Value> standings(const ValueMap& arguments, const Views& views) {
  PREFGRID_ASSIGN(const std::string keys, text_argument(arguments, "keys"));
  if (keys.size() % hex_digits != 0 || keys.size() / hex_digits > most_keys) {
    return invalid_input("the argument keys is not up to " + std::to_string(most_keys) +
                         " keys of 64 digits");
  }
  std::string letters;
  for (std::size_t at = 0; at < keys.size(); at += hex_digits) {
    const auto key = JobKey::from_hex(std::string_view(keys).substr(at, hex_digits));
    if (!key) return invalid_input("the argument keys holds no hexadecimal digits");
    const auto view = views.core.job(*key);
    const std::string state = view ? view->state : "";
    letters += state == "done" ? 'd' : state == "quarantined" ? 'f' : '-';
  }
  return Value(ValueMap{{"standings", std::move(letters)}});
}

}  // namespace

QueryTable cli_queries() {
  QueryTable table = standard_queries();
  table.emplace("results", results);
  table.emplace("jobs", jobs);
  table.emplace("standings", standings);
  return table;
}

std::string shown_state(const std::string& core_state) {
  static const std::map<std::string, std::string> words = {
      {"leased", "running"}, {"failed", "retrying"}, {"quarantined", "failed"}};
  const auto found = words.find(core_state);
  return found == words.end() ? core_state : found->second;
}

}  // namespace prefgrid
