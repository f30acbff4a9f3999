// What the session's tests share: a session with all that it says, and short ways to make leases.
#pragma once

#include "worker/agent/session.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace prefgrid::session_test {

inline JobKey key(int number) {
  JobKey result;
  result.bytes[0] = static_cast<std::uint8_t>(number);
  result.bytes[1] = static_cast<std::uint8_t>(number >> 8);
  return result;
}

inline LeaseId lease_id(int job, Attempt attempt = 1) {
  return {key(job), attempt};
}

inline Lease lease(int job, std::uint64_t affinity = 0, Attempt attempt = 1) {
  Lease result;
  result.id = lease_id(job, attempt);
  result.spec.kind = "test";
  result.affinity = affinity;
  return result;
}

inline Lease lease_with_input(int job) {
  Lease result = lease(job);
  result.inputs.push_back({"train", key(1'000 + job), {}});
  return result;
}

inline ExecutorReady ready() {
  ExecutorReady result;
  result.kinds = {{"test", 1}};
  return result;
}

inline JobResult result_with(const std::vector<std::string>& artifacts) {
  JobResult result;
  for (const std::string& name : artifacts) {
    result.artifacts.push_back({name, {}, 1, std::nullopt});
  }
  return result;
}

// Each effect is taken by the test that expects it.
class Bench {
 public:
  explicit Bench(std::uint32_t executors = 1) : session_(config(executors)) {}

  static SessionConfig config(std::uint32_t executors) {
    return {"w1", "host", 7, executors, "0.1", "/out"};
  }

  Bench& joined() {
    take(session_.start());
    for (std::uint32_t i = 0; i < executors(); ++i) {
      take(session_.executor_ready(SlotId{i}, ready(), now));
    }
    receive(Welcome{"0.1", "tcp://:1", 1'000, {}});
    effects.clear();
    return *this;
  }
  std::uint32_t executors() const { return count_; }

  void take(AgentEffects more) {
    if (checked) session_.check_invariants();
    for (AgentEffect& effect : more) effects.push_back(std::move(effect));
  }
  void receive(Message message) { take(session_.on_message(std::move(message), now)); }
  void receive_leases(std::vector<Lease> leases) { receive(Leases{std::move(leases)}); }
  void pass(std::int64_t ms) {
    now = now + ms;
    take(session_.on_tick(now));
  }
  // As the file service does: says of each failure whether the disk is to blame.
  void judge_all(bool no_room = false) {
    for (const JudgeFailure& judge : all<JudgeFailure>()) {
      take(session_.failure_judged(judge.ticket, no_room, now));
    }
  }
  void finish(std::uint32_t slot, const LeaseId& id, JobResult result = {}) {
    take(session_.executor_finished(SlotId{slot}, {id, std::move(result)}, "log", now));
  }

  // The effects of one type so far, which are then forgotten.
  template <class T>
  std::vector<T> all() {
    std::vector<T> found;
    std::erase_if(effects, [&found](AgentEffect& effect) {
      auto* wanted = std::get_if<T>(&effect);
      if (wanted) found.push_back(std::move(*wanted));
      return wanted != nullptr;
    });
    return found;
  }
  template <class T>
  std::vector<T> sent() {
    std::vector<T> found;
    std::erase_if(effects, [&found](AgentEffect& effect) {
      auto* send = std::get_if<SendControl>(&effect);
      auto* wanted = send ? std::get_if<T>(&send->message) : nullptr;
      if (wanted) found.push_back(std::move(*wanted));
      return wanted != nullptr;
    });
    return found;
  }

  bool checked = true;  // after each step: slow with thousands of tasks
  MonotonicMs now{1'000'000};
  std::vector<AgentEffect> effects;
  std::uint32_t count_ = 1;
  Session session_;
};

inline Bench bench_of(std::uint32_t executors) {
  Bench bench(executors);
  bench.count_ = executors;
  return bench;
}

}  // namespace prefgrid::session_test
