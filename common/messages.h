// The wire messages as plain C++ and their Cap'n Proto encoding: the only door to generated code.
// schemas/protocol.capnp says what each is for and when it is sent. Decoders accept any bytes from
// a stranger: they check the checksum, sizes and every enum, and never throw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/job.h"
#include "common/result.h"
#include "common/value.h"

namespace prefgrid {

inline constexpr std::uint32_t protocol_version = 1;

struct LeaseId {
  JobKey job;
  Attempt attempt = 0;
  auto operator<=>(const LeaseId&) const = default;
};

struct KindVersion {
  std::string kind;
  std::uint32_t version = 0;
  auto operator<=>(const KindVersion&) const = default;
};

// --- control endpoint ---

struct WorkerHello {
  std::string name;
  std::string host;
  std::uint64_t pid = 0;
  std::uint32_t executors = 1;
  std::vector<KindVersion> kinds;
  NumericsProfile profile;
  std::vector<LeaseId> held;
  std::string software_version;
  std::string waits_for;  // as WorkerWaits
};
struct Heartbeat {};
struct WorkerWaits {
  std::string reason;  // one line for a person
};
struct Goodbye {};
struct Progress {
  LeaseId lease;
  std::uint64_t step = 0;
  std::uint64_t total_steps = 0;
  std::optional<double> loss_nats;
};
struct ResultMessage {
  LeaseId lease;
  JobResult result;
  std::string log;
};
struct FailureMessage {
  LeaseId lease;
  JobFailure failure;
};
struct LeaseReturned {
  LeaseId lease;
};

struct Welcome {
  std::string software_version;
  std::string bulk_endpoint;
  std::uint32_t heartbeat_ms = 0;
  std::vector<LeaseId> dropped;
};
struct Refused {
  std::string reason;
};
struct ResolvedInput {
  std::string name;
  InputRef id;
  std::vector<ArtifactRef> artifacts;
};
struct Lease {
  LeaseId id;
  JobSpec spec;
  std::vector<ResolvedInput> inputs;
  std::uint64_t affinity = 0;
};
struct Leases {
  std::vector<Lease> leases;
};
struct Settled {
  LeaseId lease;
};
struct CancelLease {
  LeaseId lease;
};

struct Request {
  std::uint64_t id = 0;
  std::string verb;
  ValueMap arguments;
};
struct Reply {
  std::uint64_t id = 0;
  std::variant<Value, Error> outcome;
  bool last = true;
};

using Message = std::variant<WorkerHello, Heartbeat, Progress, ResultMessage, FailureMessage,
                             LeaseReturned, WorkerWaits, Goodbye, Welcome, Refused, Leases, Settled,
                             CancelLease, Request, Reply>;

// One frame: Cap'n Proto stream framing + CRC-32C. Never larger than limits::message_bytes: a
// result that would be becomes a failure of its job, a reply an error; of any other message that is
// a bug. Texts for people are cut to their limits and made UTF-8; other texts must be both, or the
// other side refuses the frame. Inline content is not compared with its digest here.
std::string encode(const Message& message);
// Errors: version_mismatch as ErrorCode::conflict naming both versions; damage as invalid_input.
Result<Message> decode_message(std::string_view frame);

// --- bulk endpoint ---

struct BulkPut {
  ArtifactDigest digest;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  std::string data;
};
struct BulkPutAck {
  ArtifactDigest digest;
  std::uint64_t received = 0;
  bool complete = false;
  std::string problem;
};
struct BulkGet {
  ArtifactDigest digest;
  std::uint64_t offset = 0;
  std::uint32_t credit = 0;
};
struct BulkChunk {
  ArtifactDigest digest;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  std::string data;
  std::string problem;
};
using BulkMessage = std::variant<BulkPut, BulkPutAck, BulkGet, BulkChunk>;
std::string encode(const BulkMessage& message);
Result<BulkMessage> decode_bulk(std::string_view frame);

// --- agent <-> executor ---

struct LocalInput {
  std::string name;
  InputRef id;
  std::string path;  // a folder for a job's output, a file for an outside file
};
struct ExecutorReady {
  std::vector<KindVersion> kinds;
  NumericsProfile profile;
  std::string software_version;
};
struct ExecutorFinished {
  LeaseId lease;
  JobResult result;  // artefacts named, not digested: their files lie in the output folder
};
struct RunJob {
  LeaseId lease;
  JobSpec spec;
  std::vector<LocalInput> inputs;
  std::string output_dir;
};
struct StopExecutor {};
using ExecutorMessage =
    std::variant<ExecutorReady, Progress, ExecutorFinished, FailureMessage, RunJob, StopExecutor>;
// Without the length prefix, which common/pipe_frames.h writes and reads.
std::string encode(const ExecutorMessage& message);
Result<ExecutorMessage> decode_executor(std::string_view body);

// --- store values (coordinator/store) share the encoding of the job structs ---
// They are declared in coordinator/store_records.h and use the helpers of common/schema_convert.h.

}  // namespace prefgrid
