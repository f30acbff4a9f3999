// Messages with every field set, each to a value of its own.
#pragma once

#include <string>
#include <vector>

#include "common/messages.h"
#include "common/sha256.h"

namespace prefgrid {

inline LeaseId sample_lease(Attempt attempt) {
  return {JobKey{sha256("job" + std::to_string(attempt))}, attempt};
}

inline NumericsProfile sample_profile() {
  return {"cpu", "libtorch 1.13.1", "OpenBLAS 0.3.21 Haswell", "avx2", 2, "fp32"};
}

inline WorkerHello sample_hello() {
  return {"node-1",
          "host-1",
          4711,
          3,
          {{"pretrain", 2}, {"train.lore", 5}},
          sample_profile(),
          {sample_lease(1), sample_lease(2)},
          "0.1.0",
          "the disk of /cache is full"};
}

inline ValueMap sample_parameters() {
  return {{"a", true},
          {"b", -7},
          {"c", 2.5},
          {"d", "m\xc3\xbcller"},
          {"e", ValueList{1, "x", ValueMap{{"f", ValueList{}}, {"g", 1e-5}}}}};
}

inline JobSpec sample_spec() {
  JobSpec spec{"train.lore", 3, sample_parameters(), {}, 1ULL << 63};
  spec.inputs["dataset"] = digest_of("dataset");
  spec.inputs["features"] = JobKey{sha256("features")};
  return spec;
}

inline ArtifactRef sample_artifact(const std::string& name) {
  return {name, digest_of("content"), 7, "content"};
}

inline JobResult sample_result() {
  JobResult result;
  result.metrics = {{"rm_accuracy", {}, 3.5, 5, 1}, {"policy_accuracy", 0.25, 2, 4, 0}};
  result.curve = {{1, "train_loss_nats", 0.5}, {2, "valid_loss_nats", 0.25}};
  result.artifacts = {sample_artifact("folder/model.bin"),
                      {"big", digest_of("big"), 1ULL << 40, {}}};
  result.profile = sample_profile();
  result.duration_ms = 1234;
  return result;
}

inline JobFailure sample_failure() {
  return {FailureClass::crash, "the executor got signal 11", 11, std::string("log\0\xff", 5)};
}

inline Lease sample_job_lease() {
  return {sample_lease(9),
          sample_spec(),
          {{"dataset", digest_of("dataset"), {{"", digest_of("dataset"), 12, {}}}},
           {"features", JobKey{sha256("features")}, {sample_artifact("features.bin")}}},
          99};
}

inline RunJob sample_run() {
  return {sample_lease(8),
          sample_spec(),
          {{"dataset", digest_of("dataset"), "/data/\xff.jsonl"},
           {"features", JobKey{sha256("features")}, "/cache/features"}},
          "/out/\xfe"};
}

inline std::vector<Message> sample_messages() {
  std::vector<Message> messages = {sample_hello(),
                                   Heartbeat{},
                                   Progress{sample_lease(1), 1, 2, 0.5},
                                   ResultMessage{sample_lease(1), sample_result(), "log"},
                                   FailureMessage{sample_lease(1), sample_failure()},
                                   LeaseReturned{sample_lease(1)},
                                   WorkerWaits{"the disk is full"},
                                   Goodbye{},
                                   Welcome{"0.1.0", "tcp://:7", 1000, {sample_lease(1)}},
                                   Refused{"no"},
                                   Leases{{sample_job_lease()}},
                                   Settled{sample_lease(1)},
                                   CancelLease{sample_lease(1)},
                                   Request{1, "submit", sample_parameters()},
                                   LeaseReturned{sample_lease(2)}};
  // Step by step: g++ 12 takes a moved variant for an uninitialised one.
  Reply reply;
  reply.id = 1;
  reply.outcome = Value(sample_parameters());
  messages.emplace_back(reply);
  reply.outcome = Error{ErrorCode::conflict, "held"};
  messages.emplace_back(reply);
  return messages;
}

inline std::vector<BulkMessage> sample_bulk_messages() {
  const ArtifactDigest digest = digest_of("x");
  return {BulkPut{digest, 10, 2, "data"}, BulkPutAck{digest, 6, true, "p"}, BulkGet{digest, 3, 4},
          BulkChunk{digest, 10, 2, "data", "p"}};
}

inline std::vector<ExecutorMessage> sample_executor_messages() {
  return {ExecutorReady{{{"pretrain", 1}}, sample_profile(), "0.1.0"},
          Progress{sample_lease(1), 1, 2, {}},
          ExecutorFinished{sample_lease(1), sample_result()},
          FailureMessage{sample_lease(1), sample_failure()},
          sample_run(),
          StopExecutor{}};
}

}  // namespace prefgrid
