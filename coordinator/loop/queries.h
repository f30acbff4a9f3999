// What people may ask, answered from a core, its plans and the store: by the live loop for
// requests, and by a verb that opened the store itself. Reads only. Same thread as the core.
// Arguments and answers of each verb: docs/protocol.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/result.h"
#include "common/value.h"
#include "coordinator/core/core.h"
#include "coordinator/loop/experiment_book.h"
#include "coordinator/store/store.h"

namespace prefgrid {

struct LoopFacts {
  bool live = false;  // a coordinator runs, and this is it
  bool disk_full = false;
  std::string bulk_endpoint;  // as whoever asks must see it
  std::uint64_t bad_frames = 0;
};

struct Views {
  const Store& store;
  const Core& core;
  const ExperimentBook& book;
  LoopFacts loop;
};

using Query = std::function<Result<Value>(const ValueMap& arguments, const Views& views)>;
// Verb -> query. Others may be added before the coordinator starts ("results").
using QueryTable = std::map<std::string, Query>;
// ping, status, workers, explain, events, executions, logs, spec.
QueryTable standard_queries();

// Errors: an unknown verb names the known ones; arguments of a wrong type name the argument.
Result<Value> answer(const QueryTable& table, const std::string& verb, const ValueMap& arguments,
                     const Views& views);

// --- for those who write queries ---

// arguments["experiment"]: an id or a name; absent: the newest. Errors name what there is.
Result<const BookedExperiment*> wanted_experiment(const ValueMap& arguments, const Views& views);
// arguments["job"]: a key or the first digits of one (at least 4).
Result<BookedJob> wanted_job(const ValueMap& arguments, const Views& views);
Result<std::string> text_argument(const ValueMap& arguments, const std::string& name);
Result<std::int64_t> integer_argument(const ValueMap& arguments, const std::string& name,
                                      std::int64_t otherwise);

// A committed result; nullopt: none, or it cannot be read (which is logged).
std::optional<JobResult> result_of(const Views& views, const JobKey& key);
// Why a job has no result, one line.
std::string why_missing(const Views& views, const JobKey& key);
// status of one experiment: what `watch` pushes.
Value progress_value(const BookedExperiment& experiment, const Views& views);
// Text from outside as valid UTF-8: other bytes become U+FFFD.
std::string to_utf8(std::string_view bytes);

// A store that no coordinator holds, opened for reading and restored: Views for a verb.
class OfflineViews {
 public:
  static Result<std::unique_ptr<OfflineViews>> open(const std::filesystem::path& folder,
                                                    const Planner& planner);
  Views views() const { return {*store_, restored_.core, restored_.book, {}}; }

 private:
  OfflineViews(std::unique_ptr<Store> store, Restored restored)
      : store_(std::move(store)), restored_(std::move(restored)) {}
  std::unique_ptr<Store> store_;
  Restored restored_;
};

}  // namespace prefgrid
