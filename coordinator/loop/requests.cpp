#include <algorithm>
#include <utility>

#include "common/text.h"
#include "coordinator/loop/coordinator_impl.h"
#include "coordinator/loop/endpoints.h"

namespace prefgrid {
namespace {

constexpr std::int64_t push_interval_ms = 100;
// Also without a change, so that the client knows that the coordinator lives.
constexpr std::int64_t push_at_least_ms = 2'000;
constexpr std::size_t most_watchers = 256;

Value id_value(ExperimentId id) {
  return std::int64_t{static_cast<std::uint32_t>(id)};
}

Result<ExperimentRecord> record_of(const ValueMap& arguments) {
  ExperimentRecord record;
  PREFGRID_ASSIGN(record.name, text_argument(arguments, "name"));
  if (record.name.empty() || record.name.size() > limits::name_bytes) {
    return invalid_input("an experiment's name has 1 to " + std::to_string(limits::name_bytes) +
                         " bytes");
  }
  PREFGRID_ASSIGN(record.spec_text, text_argument(arguments, "spec_text"));
  if (record.spec_text.size() > limits::spec_file_bytes) {
    return invalid_input("the spec's text is over the size limit");
  }
  for (const auto& [name, target] :
       {std::pair{"spec", &record.spec}, std::pair{"dataset", &record.dataset}}) {
    const auto found = arguments.find(name);
    if (found == arguments.end()) {
      return invalid_input(std::string("the argument ") + name + " is missing");
    }
    *target = found->second;
  }
  PREFGRID_ASSIGN(const std::string hex, text_argument(arguments, "dataset_digest"));
  const auto digest = ArtifactDigest::from_hex(hex);
  if (!digest) return invalid_input("the argument dataset_digest is not 64 hexadecimal digits");
  record.dataset_digest = *digest;
  PREFGRID_ASSIGN(const std::int64_t priority, integer_argument(arguments, "priority", 0));
  if (priority < INT32_MIN || priority > INT32_MAX) {
    return invalid_input("the argument priority is out of range");
  }
  record.priority = static_cast<std::int32_t>(priority);
  return record;
}

}  // namespace

// The core's, or submitted in this very cycle.
bool Coordinator::Impl::knows(ExperimentId id) const {
  return core.knows(id) ||
         std::any_of(batch.experiments.begin(), batch.experiments.end(),
                     [id](const ExperimentRecord& record) { return record.id == id; });
}

// The disk of the store, or of a worker beside it, which mostly is the same one: what keeps a `run`
// from going on.
bool Coordinator::Impl::waits_for_room() const {
  if (paused || store->out_of_space()) return true;
  const std::vector<WorkerView> workers = core.workers();
  return std::any_of(workers.begin(), workers.end(), [](const WorkerView& worker) {
    static const std::string here = this_host();
    return !worker.waits_for.empty() && worker.host == here;
  });
}

Views Coordinator::Impl::views(const PeerId* peer) const {
  LoopFacts facts{true, paused || store->out_of_space(), "", bad_frames};
  if (peer != nullptr) {
    facts.bulk_endpoint = without_wildcard(bulk->endpoints()[sockets.endpoint_of(*peer)]);
  }
  return {*store, core, book, facts};
}

void Coordinator::Impl::take_request(PeerId peer, Request request) {
  if (request.verb == "watch") {
    watch(std::move(peer), request);
    return;
  }
  Result<std::function<Result<Value>()>> reply = Error{};
  if (request.verb == "submit") {
    reply = submit(request.arguments);
  } else if (request.verb == "cancel" || request.verb == "retry" || request.verb == "drain") {
    reply = command(request.verb, request.arguments);
  } else {
    // Answered after the batch, so that it sees what came before it.
    reply = std::function<Result<Value>()>([this, peer, request] {
      return answer(options.queries, request.verb, request.arguments, views(&peer));
    });
  }
  if (!reply.ok()) {
    const Error error = reply.error();
    reply = std::function<Result<Value>()>([error] { return Result<Value>(error); });
  }
  replies.push_back({std::move(peer), request.id, *std::move(reply)});
}

// While the disk is full: only what reads.
void Coordinator::Impl::answer_now(const PeerId& peer, const Request& request) {
  Reply message{request.id, Error{}, true};
  auto outcome = answer(options.queries, request.verb, request.arguments, views(&peer));
  if (outcome.ok()) {
    message.outcome = *std::move(outcome);
  } else {
    message.outcome = outcome.error();
  }
  send(peer, std::move(message));
}

Result<std::function<Result<Value>()>> Coordinator::Impl::submit(const ValueMap& arguments) {
  PREFGRID_ASSIGN(ExperimentRecord record, record_of(arguments));
  const BookedExperiment* const same = book.same_as(record);
  const bool is_new = same == nullptr || !knows(same->record.id);
  const bool revived = !is_new && same->record.cancelled;
  ExperimentId id{};
  if (revived) {
    ExperimentRecord live = same->record;
    live.cancelled = false;
    live.priority = record.priority;
    id = live.id;
    events.emplace_back(ReviveExperiment{id, live.priority});
    amend(std::move(live));
  } else if (!is_new) {
    id = same->record.id;
  } else {
    PREFGRID_ASSIGN(const auto dataset, store->artifact_size(record.dataset_digest));
    if (!dataset) {
      return Error{ErrorCode::not_found, "the dataset " + record.dataset_digest.hex() +
                                             " is not in the store: upload it before submitting"};
    }
    id = record.id = book.next_id();
    record.submitted = wall_now();
    PREFGRID_ASSIGN(Plan plan, options.planner(record));
    auto shared = std::make_shared<const Plan>(std::move(plan));
    events.emplace_back(
        ExperimentSubmitted{.id = id,
                            .name = record.name,
                            .priority = record.priority,
                            .plan = std::make_shared<const CorePlan>(core_plan(*shared))});
    batch.experiments.push_back(record);
    book.add({std::move(record), std::move(shared), ""});
  }
  return std::function<Result<Value>()>([this, id, is_new, revived] {
    return Result<Value>(ValueMap{{"experiment", id_value(id)},
                                  {"new", is_new},
                                  {"revived", revived},
                                  {"progress", progress_value(*book.find(id), views(nullptr))}});
  });
}

// In the store with this cycle's facts.
void Coordinator::Impl::amend(ExperimentRecord record) {
  book.amend(record);
  batch.experiments.push_back(std::move(record));
}

Result<std::function<Result<Value>()>> Coordinator::Impl::command(const std::string& verb,
                                                                  const ValueMap& arguments) {
  if (verb == "drain") {
    PREFGRID_ASSIGN(const std::string name, text_argument(arguments, "worker"));
    const auto on = arguments.find("drain");
    const bool* const drain = on == arguments.end() ? nullptr : std::get_if<bool>(&on->second);
    events.emplace_back(DrainWorker{name, drain == nullptr || *drain});
    return std::function<Result<Value>()>([name] {
      return Result<Value>(ValueMap{{"worker", name}});
    });
  }
  PREFGRID_ASSIGN(const auto* const wanted, wanted_experiment(arguments, views(nullptr)));
  const ExperimentId id = wanted->record.id;
  if (!knows(id)) {
    return Error{ErrorCode::conflict,
                 "experiment " + wanted->record.name +
                     " cannot be expanded by this version: " + wanted->problem};
  }
  if (verb == "cancel") {
    ExperimentRecord cancelled = wanted->record;
    cancelled.cancelled = true;
    events.emplace_back(CancelExperiment{id});
    amend(std::move(cancelled));
  } else {
    events.emplace_back(RetryFailed{id});
  }
  return std::function<Result<Value>()>([this, id] {
    return Result<Value>(ValueMap{{"experiment", id_value(id)},
                                  {"progress", progress_value(*book.find(id), views(nullptr))}});
  });
}

void Coordinator::Impl::watch(PeerId peer, const Request& request) {
  const auto wanted = wanted_experiment(request.arguments, views(nullptr));
  if (!wanted.ok() || watchers.size() >= most_watchers) {
    const Error error =
        wanted.ok() ? Error{ErrorCode::unavailable, "too many watchers already"} : wanted.error();
    replies.push_back({std::move(peer), request.id, [error] { return Result<Value>(error); }});
    return;
  }
  // Asked again by a client that has heard nothing for a while: the same one.
  std::erase_if(watchers,
                [&](const Watcher& other) { return other.peer == peer && other.id == request.id; });
  watchers.push_back({std::move(peer), request.id, (*wanted)->record.id, MonotonicMs{INT32_MIN}});
}

void Coordinator::Impl::push_to_watchers(MonotonicMs now) {
  std::erase_if(watchers, [&](Watcher& watcher) {
    const std::int64_t since = now - watcher.last_sent;
    if (since < (watcher.changed ? push_interval_ms : push_at_least_ms)) return false;
    const BookedExperiment& experiment = *book.find(watcher.experiment);
    const bool finished = !core.knows(watcher.experiment) || core.finished(watcher.experiment);
    Value value = ValueMap{{"experiment", progress_value(experiment, views(nullptr))},
                           {"workers", static_cast<std::int64_t>(core.workers().size())},
                           {"disk_full", waits_for_room()}};
    watcher.last_sent = now;
    watcher.changed = false;
    // One that does not take it is gone, or asks again when it has heard nothing for a while.
    return !send(watcher.peer, Reply{watcher.id, std::move(value), finished}) || finished;
  });
}

}  // namespace prefgrid
