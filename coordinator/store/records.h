// What the store keeps, as plain C++; schemas/store.capnp says what each field is for, and
// docs/store-format.md how the bytes lie. Job records, events and results are the core's facts
// (coordinator/core/effects.h). Values only; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/ids.h"
#include "common/result.h"
#include "common/value.h"
#include "coordinator/core/effects.h"

namespace prefgrid {

inline constexpr std::uint32_t store_format_version = 1;

struct MetaRecord {
  std::uint32_t format_version = store_format_version;
  std::string software_version;
  WallMs created{};
};

// Rewritten in every batch; a history that differs from it has a hole.
struct SequenceRecord {
  std::uint64_t last_event = 0;
  std::uint64_t event_count = 0;
  std::uint64_t result_count = 0;
  std::uint64_t artifact_count = 0;

  bool operator==(const SequenceRecord&) const = default;
};

// All that the grid is expanded from: no file outside the store is needed again.
struct ExperimentRecord {
  ExperimentId id{};
  std::string name;
  Value spec;             // to_value(ExperimentSpec)
  std::string spec_text;  // as the person wrote it
  Value dataset;          // to_value(DatasetSummary)
  ArtifactDigest dataset_digest;
  WallMs submitted{};
  std::int32_t priority = 0;
  bool cancelled = false;  // until it is submitted again
};

std::string encode_record(const MetaRecord& value);
std::string encode_record(const SequenceRecord& value);
std::string encode_record(const ExperimentRecord& value);
std::string encode_record(const JobFact& value);  // without its key
std::string encode_record(const EventFact& value);
std::string encode_record(const ResultFact& value);  // without its key and log
// Bytes that are no structure (a log): the same version and checksum around them.
std::string encode_raw(std::string_view bytes);

// Errors: a wrong checksum, a newer record version, a field that cannot be. They do not name the
// record: the caller knows where it stood.
Result<MetaRecord> decode_meta(std::string_view bytes);
Result<SequenceRecord> decode_sequence(std::string_view bytes);
Result<ExperimentRecord> decode_experiment(std::string_view bytes);
Result<JobFact> decode_job(const JobKey& key, std::string_view bytes);
Result<EventFact> decode_event(std::string_view bytes);
Result<ResultFact> decode_result(const JobKey& key, std::string_view bytes);
Result<std::string> decode_raw(std::string_view bytes);

}  // namespace prefgrid
