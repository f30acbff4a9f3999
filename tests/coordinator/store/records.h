// Small records for the store's tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "common/sha256.h"
#include "coordinator/store/store.h"

namespace prefgrid::testing {

inline JobKey key_of(std::uint64_t number) {
  JobKey key;
  key.bytes = sha256("job " + std::to_string(number));
  return key;
}

inline ResultFact result_of(std::uint64_t number) {
  ResultFact fact;
  fact.job = key_of(number);
  fact.attempt = 1;
  fact.worker = "w1";
  fact.committed = WallMs{1'700'000'000'000};
  fact.result.metrics.push_back({"rm_accuracy", 0.5, static_cast<double>(number), 3, 1});
  fact.result.duration_ms = number;
  fact.log = "log of " + std::to_string(number);
  return fact;
}

// What the core says when a job is done: its record, the event, the result.
inline StoreBatch done_batch(std::uint64_t first, std::uint64_t count = 1) {
  StoreBatch batch;
  for (std::uint64_t number = first; number < first + count; ++number) {
    batch.facts.push_back(JobFact{key_of(number), 1, {}, DoneFact{}});
    batch.facts.push_back(EventFact{WallMs{5}, key_of(number), 1, "w1", history::Done{}});
    batch.facts.push_back(result_of(number));
  }
  return batch;
}

// Whether job `number` is stored exactly as done_batch made it.
inline bool is_whole(const Store& store, std::uint64_t number) {
  const auto result = store.result(key_of(number));
  const auto job = store.job(key_of(number));
  const auto log = store.log(key_of(number));
  return result.ok() && *result && (*result)->result.duration_ms == number &&
         (*result)->result.metrics.at(0).sum == static_cast<double>(number) && job.ok() && *job &&
         std::holds_alternative<DoneFact>((*job)->state) && log.ok() &&
         *log == "log of " + std::to_string(number);
}

inline bool is_absent(const Store& store, std::uint64_t number) {
  const auto result = store.result(key_of(number));
  const auto job = store.job(key_of(number));
  return result.ok() && !*result && job.ok() && !*job;
}

}  // namespace prefgrid::testing
