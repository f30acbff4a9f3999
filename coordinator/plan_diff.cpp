#include "coordinator/plan_diff.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "experiments/catalog/describe.h"

namespace prefgrid {
namespace {

// Bounds the comparisons per job where a grid of many settings was replaced by another one.
constexpr std::size_t candidates_per_place = 64;
constexpr std::size_t shown_reasons = 12;

struct Change {
  std::string text;
  std::string input;  // the input that differs, if the text is about one
};

// The places that two experiments have in common, whatever their settings.
std::string place_of(const PlannedJob& job) {
  std::string place = job.spec.kind;
  const auto part = [&](const std::string& text) { place += '\0' + text; };
  if (job.cells.empty()) return place;
  const CellLabel& cell = job.cells.front();
  part(cell.method);
  part(cell.backbone);
  part(cell.policy);
  part(cell.user);
  part(cell.seed ? std::to_string(*cell.seed) : "");
  return place;
}

using Changes = std::vector<Change>;

std::string shown(const ValueMap& map, const std::string& name, const std::vector<Field>& fields) {
  const auto found = map.find(name);
  if (found != map.end()) return value_text(found->second);
  const Field* field = find_field(fields, name);
  return field && field->default_value ? value_text(*field->default_value) : "its default";
}

// Differences of two maps; a default that was left out is shown as its value.
void compare_maps(const ValueMap& before, const ValueMap& after, const std::vector<Field>& fields,
                  Changes& changes) {
  ValueMap names = before;
  names.insert(after.begin(), after.end());
  for (const auto& [name, unused] : names) {
    const auto old_value = before.find(name);
    const auto new_value = after.find(name);
    if (name == "method_fields") continue;  // compared with the method's own fields
    if (old_value != before.end() && new_value != after.end() &&
        old_value->second == new_value->second) {
      continue;
    }
    const std::string what = name == "method_version" ? "method version" : name;
    changes.push_back(
        {what + " changed " + shown(before, name, fields) + " -> " + shown(after, name, fields),
         ""});
  }
}

const ValueMap& method_fields(const JobSpec& spec) {
  static const ValueMap none;
  const auto found = spec.parameters.find("method_fields");
  if (found == spec.parameters.end()) return none;
  const auto* map = std::get_if<ValueMap>(&found->second);
  return map ? *map : none;
}

Changes compare(const JobSpec& before, const JobSpec& after, const Catalog& catalog) {
  Changes changes;
  if (before.kind_version != after.kind_version) {
    changes.push_back({"kind version " + std::to_string(before.kind_version) + " -> " +
                           std::to_string(after.kind_version),
                       ""});
  }
  compare_maps(before.parameters, after.parameters, catalog.fields_of(after.kind), changes);
  const auto method = after.parameters.find("method");
  if (method != after.parameters.end() && std::holds_alternative<std::string>(method->second)) {
    const MethodRow* row = catalog.method(method->second.text());
    compare_maps(method_fields(before), method_fields(after),
                 row ? row->fields : std::vector<Field>(), changes);
  }
  for (const auto& [name, id] : after.inputs) {
    const auto old_input = before.inputs.find(name);
    if (old_input != before.inputs.end() && old_input->second == id) continue;
    changes.push_back({name + " changed", name});
  }
  if (before.seed != after.seed) changes.push_back({"seed changed", ""});
  return changes;
}

class Explainer {
 public:
  Explainer(const Plan& plan, std::span<const Plan> earlier,
            const std::function<Standing(const JobKey&)>& standing, const Catalog& catalog)
      : plan_(plan), catalog_(catalog), reasons_(plan.jobs.size()) {
    index_.reserve(plan.jobs.size());
    for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
      index_.emplace(plan.jobs.key(i), i);
    }
    for (const Plan& other : earlier) {
      for (std::size_t i = 0; i < other.jobs.size(); ++i) {
        const JobKey& key = other.jobs.key(i);
        if (index_.contains(key)) {
          known_.insert(key);
          continue;
        }
        if (standing(key) != Standing::done) continue;
        auto& here = replaced_[place_of(other.jobs[i])];
        if (here.size() < candidates_per_place) here.push_back({&other, i});
      }
    }
  }

  // Call in the plan's order: an input's reason is known before its readers ask. Empty: new.
  const std::string& explain(std::size_t job) {
    // Nothing was replaced, or it was planned before: nothing changed.
    if (replaced_.empty() || known_.contains(plan_.jobs.key(job))) return reasons_[job];
    const PlannedJob planned = plan_.jobs[job];
    const auto found = replaced_.find(place_of(planned));
    if (found == replaced_.end()) return reasons_[job];
    std::optional<Changes> best;
    for (const auto& [earlier, index] : found->second) {
      Changes changes = compare(earlier->jobs[index].spec, planned.spec, catalog_);
      if (!best || changes.size() < best->size()) best = std::move(changes);
    }
    reasons_[job] = text_of(planned, *best);
    return reasons_[job];
  }

 private:
  std::string text_of(const PlannedJob& job, const Changes& changes) const {
    std::string own;
    std::string inherited;
    for (const Change& change : changes) {
      if (change.input.empty()) {
        own += (own.empty() ? "" : ", ") + change.text;
      } else if (inherited.empty()) {
        inherited = input_reason(job, change);
      }
    }
    if (own.empty()) return inherited;
    const std::string method = job.cells.empty() ? "" : job.cells.front().method;
    return method.empty() ? own : method + ": " + own;
  }

  // Of an input that is a file: that it changed. Of another job: why that one runs.
  std::string input_reason(const PlannedJob& job, const Change& change) const {
    const InputRef& id = job.spec.inputs.at(change.input);
    const auto* key = std::get_if<JobKey>(&id);
    if (key == nullptr) return change.text;
    const auto found = index_.find(*key);
    const bool explained = found != index_.end() && !reasons_[found->second].empty();
    return explained ? reasons_[found->second] : change.text;
  }

  const Plan& plan_;
  const Catalog& catalog_;
  std::vector<std::string> reasons_;  // by job of the plan
  std::unordered_map<JobKey, std::size_t> index_;
  std::unordered_set<JobKey> known_;  // of an earlier plan, finished or not
  std::unordered_map<std::string, std::vector<std::pair<const Plan*, std::size_t>>> replaced_;
};

std::size_t stage_index(const PlanDiff& diff, const std::string& stage) {
  const auto found = std::find_if(diff.stages.begin(), diff.stages.end(),
                                  [&](const StageCounts& s) { return s.stage == stage; });
  return static_cast<std::size_t>(found - diff.stages.begin());
}

std::string column(std::uint64_t number, std::size_t width) {
  const std::string text = std::to_string(number);
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

}  // namespace

namespace {

// Blocked: it needs a job that has failed for good, or one that is blocked itself.
enum class Turn : std::uint8_t { reuse, run, failed, blocked };

std::vector<Turn> turns_of(const Plan& plan,
                           const std::function<Standing(const JobKey&)>& standing) {
  std::vector<Turn> turns;
  turns.reserve(plan.jobs.size());
  for (const PlannedJob& job : plan.jobs) {
    const Standing known = standing(job.key);
    const bool stuck =
        std::any_of(job.dependencies.begin(), job.dependencies.end(), [&](std::uint32_t index) {
          return turns[index] == Turn::failed || turns[index] == Turn::blocked;
        });
    turns.push_back(known == Standing::done     ? Turn::reuse
                    : known == Standing::failed ? Turn::failed
                    : stuck                     ? Turn::blocked
                                                : Turn::run);
  }
  return turns;
}

void count(Turn turn, StageCounts& stage, JobTotals& left) {
  ++stage.total;
  if (turn == Turn::reuse) ++stage.reuse;
  for (JobTotals* totals : {&stage.left, &left}) {
    if (turn == Turn::run) ++totals->run;
    if (turn == Turn::failed) ++totals->failed;
    if (turn == Turn::blocked) ++totals->blocked;
  }
}

// The lines of one stage's reasons.
std::string reasons_text(const PlanDiff& diff, const std::string& stage) {
  std::string out;
  std::size_t shown = 0;
  std::uint64_t hidden = 0;
  for (const RerunReason& rerun : diff.reruns) {
    if (rerun.stage != stage) continue;
    if (++shown > shown_reasons) {
      hidden += rerun.jobs;
      continue;
    }
    out += "  re-run " + std::to_string(rerun.jobs) + " because " + rerun.reason + "\n";
  }
  if (hidden > 0) out += "  re-run " + std::to_string(hidden) + " for other reasons\n";
  return out;
}

}  // namespace

PlanDiff diff_plan(const Plan& plan, std::span<const Plan> earlier,
                   const std::function<Standing(const JobKey&)>& standing, const Catalog& catalog) {
  PlanDiff diff;
  for (const std::string& stage : plan.stages) diff.stages.push_back({stage, 0, 0, {}});
  Explainer explainer(plan, earlier, standing, catalog);
  const std::vector<Turn> turns = turns_of(plan, standing);
  std::vector<std::map<std::string, std::uint64_t>> reasons(plan.stages.size());
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
    const std::size_t stage = stage_index(diff, plan.jobs.stage(i));
    count(turns[i], diff.stages[stage], diff.left);
    // Reused jobs are asked too: a reader of theirs may run for their sake.
    const std::string& reason = explainer.explain(i);
    if (turns[i] == Turn::run && !reason.empty()) ++reasons[stage][reason];
  }
  for (std::size_t stage = 0; stage < reasons.size(); ++stage) {
    const std::size_t first = diff.reruns.size();
    for (const auto& [reason, jobs] : reasons[stage]) {
      diff.reruns.push_back({plan.stages[stage], reason, jobs});
    }
    std::stable_sort(diff.reruns.begin() + static_cast<std::ptrdiff_t>(first), diff.reruns.end(),
                     [](const RerunReason& a, const RerunReason& b) { return a.jobs > b.jobs; });
  }
  return diff;
}

std::string totals_text(const JobTotals& left, const std::string& spec_file) {
  std::string out = std::to_string(left.run) + (left.run == 1 ? " job to run" : " jobs to run");
  if (left.failed == 0) return out;
  out += "; " + std::to_string(left.failed) + " failed";
  if (left.blocked > 0) out += ", " + std::to_string(left.blocked) + " blocked by them";
  return out + ": `prefgrid retry " + spec_file + "` lets them run again";
}

std::string plan_diff_text(const PlanDiff& diff, const std::string& spec_file,
                           std::span<const std::string> notes) {
  const bool stuck = diff.left.failed > 0;
  std::string out = "stage                total    reuse      run";
  out += stuck ? "   failed  blocked\n" : "\n";
  for (const StageCounts& stage : diff.stages) {
    std::string name = stage.stage;
    name.resize(std::max<std::size_t>(name.size(), 17), ' ');
    out += name + column(stage.total, 9) + column(stage.reuse, 9) + column(stage.left.run, 9);
    if (stuck) out += column(stage.left.failed, 9) + column(stage.left.blocked, 9);
    out += "\n" + reasons_text(diff, stage.stage);
  }
  out += totals_text(diff.left, spec_file) + "\n";
  for (const std::string& note : notes) out += "note: " + note + "\n";
  return out;
}

std::string plan_diff_json(const PlanDiff& diff, std::span<const std::string> notes) {
  nlohmann::ordered_json out;
  out["stages"] = nlohmann::ordered_json::array();
  for (const StageCounts& stage : diff.stages) {
    out["stages"].push_back({{"stage", stage.stage},
                             {"total", stage.total},
                             {"reuse", stage.reuse},
                             {"run", stage.left.run},
                             {"failed", stage.left.failed},
                             {"blocked", stage.left.blocked}});
  }
  out["run"] = diff.left.run;
  out["failed"] = diff.left.failed;
  out["blocked"] = diff.left.blocked;
  out["reruns"] = nlohmann::ordered_json::array();
  for (const RerunReason& rerun : diff.reruns) {
    out["reruns"].push_back(
        {{"stage", rerun.stage}, {"reason", rerun.reason}, {"jobs", rerun.jobs}});
  }
  out["notes"] = std::vector<std::string>(notes.begin(), notes.end());
  // A user's name in a note may hold any bytes that JSON cannot.
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace prefgrid
