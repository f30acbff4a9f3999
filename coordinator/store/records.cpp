#include "coordinator/store/records.h"

#include <utility>

#include "common/crc32c.h"
#include "common/limits.h"
#include "common/schema_convert.h"
#include "schemas/store.capnp.h"

namespace prefgrid {
namespace {

constexpr char record_version = 1;
constexpr std::string_view record_prefix{&record_version, 1};
constexpr std::size_t checksum_bytes = 4;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

// The version stands outside the structure, so that a newer one is told from damage.
template <class Schema, class Convert>
std::invoke_result_t<Convert, typename Schema::Reader> unseal_record(std::string_view bytes,
                                                                     std::string_view what,
                                                                     Convert&& convert) {
  if (!bytes.empty() && bytes[0] > record_version) {
    return Error{ErrorCode::conflict, std::string(what) + ": made by a newer prefgrid"};
  }
  return unseal<Schema>(bytes, record_prefix.size(), what, std::forward<Convert>(convert));
}

std::int64_t number(WallMs time) {
  return static_cast<std::int64_t>(time);
}

Error unknown_kind(std::string_view what) {
  return {ErrorCode::io, std::string(what) + ": a kind that this version does not know"};
}

}  // namespace

std::string encode_record(const MetaRecord& value) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::MetaRecord>();
  root.setFormatVersion(value.format_version);
  root.setSoftwareVersion(value.software_version);
  root.setCreatedWallMs(number(value.created));
  return seal(message, record_prefix);
}

Result<MetaRecord> decode_meta(std::string_view bytes) {
  return unseal_record<schema::MetaRecord>(
      bytes, "format record", [](schema::MetaRecord::Reader reader) -> Result<MetaRecord> {
        MetaRecord value;
        value.format_version = reader.getFormatVersion();
        PREFGRID_ASSIGN(value.software_version,
                        read_text(reader.getSoftwareVersion(), "version", limits::name_bytes));
        value.created = WallMs{reader.getCreatedWallMs()};
        return value;
      });
}

std::string encode_record(const SequenceRecord& value) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::SequenceRecord>();
  root.setLastEvent(value.last_event);
  root.setEventCount(value.event_count);
  root.setResultCount(value.result_count);
  root.setArtifactCount(value.artifact_count);
  return seal(message, record_prefix);
}

Result<SequenceRecord> decode_sequence(std::string_view bytes) {
  return unseal_record<schema::SequenceRecord>(
      bytes, "sequence record",
      [](schema::SequenceRecord::Reader reader) -> Result<SequenceRecord> {
        return SequenceRecord{reader.getLastEvent(), reader.getEventCount(),
                              reader.getResultCount(), reader.getArtifactCount()};
      });
}

std::string encode_record(const ExperimentRecord& value) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::ExperimentRecord>();
  root.setId(static_cast<std::uint32_t>(value.id));
  root.setName(as_text(value.name));
  write(root.initSpec(), value.spec);
  root.setSpecText(as_text(value.spec_text));
  write(root.initDataset(), value.dataset);
  root.setDatasetDigest(id_data(value.dataset_digest));
  root.setSubmittedWallMs(number(value.submitted));
  root.setPriority(value.priority);
  root.setCancelled(value.cancelled);
  return seal(message, record_prefix);
}

Result<ExperimentRecord> decode_experiment(std::string_view bytes) {
  return unseal_record<schema::ExperimentRecord>(
      bytes, "experiment", [](schema::ExperimentRecord::Reader reader) -> Result<ExperimentRecord> {
        ExperimentRecord value;
        value.id = ExperimentId{reader.getId()};
        PREFGRID_ASSIGN(value.name, read_text(reader.getName(), "name", limits::name_bytes));
        PREFGRID_ASSIGN(value.spec, read(reader.getSpec()));
        PREFGRID_ASSIGN(value.spec_text,
                        read_text(reader.getSpecText(), "text", limits::spec_file_bytes));
        PREFGRID_ASSIGN(value.dataset, read(reader.getDataset()));
        PREFGRID_ASSIGN(value.dataset_digest,
                        read_id<ArtifactDigest>(reader.getDatasetDigest(), "dataset"));
        value.submitted = WallMs{reader.getSubmittedWallMs()};
        value.priority = reader.getPriority();
        value.cancelled = reader.getCancelled();
        return value;
      });
}

std::string encode_record(const JobFact& value) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::JobRecord>();
  root.setAttempt(value.attempt);
  auto failures = root.initFailures(static_cast<unsigned>(value.failures.size()));
  for (unsigned i = 0; i < failures.size(); ++i) failures.set(i, value.failures[i]);
  std::visit(Overloaded{[&](const WaitingFact&) { root.setWaiting(); },
                        [&](const LeasedFact& leased) {
                          auto group = root.initLeased();
                          group.setWorkerName(as_text(leased.worker));
                          group.setSinceWallMs(number(leased.since));
                        },
                        [&](const DoneFact&) { root.setDone(); },
                        [&](const QuarantinedFact& quarantined) {
                          write(root.initQuarantined(), quarantined.failure);
                        },
                        [&](const CancelledFact&) { root.setCancelled(); }},
             value.state);
  return seal(message, record_prefix);
}

namespace {

using JobState = decltype(JobFact::state);

Result<JobState> read_state(schema::JobRecord::Reader reader) {
  switch (reader.which()) {
    case schema::JobRecord::WAITING:
      return JobState(WaitingFact{});
    case schema::JobRecord::LEASED: {
      PREFGRID_ASSIGN(std::string worker,
                      read_text(reader.getLeased().getWorkerName(), "worker", limits::name_bytes));
      return JobState(LeasedFact{std::move(worker), WallMs{reader.getLeased().getSinceWallMs()}});
    }
    case schema::JobRecord::DONE:
      return JobState(DoneFact{});
    case schema::JobRecord::QUARANTINED: {
      PREFGRID_ASSIGN(JobFailure failure, read(reader.getQuarantined()));
      return JobState(QuarantinedFact{std::move(failure)});
    }
    case schema::JobRecord::CANCELLED:
      return JobState(CancelledFact{});
  }
  return unknown_kind("a job's state");
}

Result<JobFact> read_job(const JobKey& key, schema::JobRecord::Reader reader) {
  PREFGRID_ASSIGN(JobState state, read_state(reader));
  JobFact fact{key, reader.getAttempt(), {}, std::move(state)};
  const auto failures = reader.getFailures();
  if (failures.size() > fact.failures.size()) return unknown_kind("a job's failures");
  for (unsigned i = 0; i < failures.size(); ++i) fact.failures[i] = failures[i];
  return fact;
}

}  // namespace

Result<JobFact> decode_job(const JobKey& key, std::string_view bytes) {
  return unseal_record<schema::JobRecord>(
      bytes, "job", [&key](schema::JobRecord::Reader reader) { return read_job(key, reader); });
}

std::string encode_record(const EventFact& value) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::EventRecord>();
  root.setWallMs(number(value.wall));
  if (value.job) root.setJob(id_data(*value.job));
  root.setAttempt(value.attempt);
  root.setWorker(as_text(value.worker));
  std::visit(
      Overloaded{
          [&](const history::Submitted& it) { root.setSubmitted(as_text(it.experiment)); },
          [&](const history::Leased&) { root.setLeased(); },
          [&](const history::Done&) { root.setDone(); },
          [&](const history::Failed& it) { write(root.initFailed(), it.failure); },
          [&](const history::Quarantined&) { root.setQuarantined(); },
          [&](const history::LeaseLost&) { root.setLeaseLost(); },
          [&](const history::LeaseReturned&) { root.setLeaseReturned(); },
          [&](const history::ResultDropped& it) { root.setResultDropped(as_text(it.reason)); },
          [&](const history::WorkerJoined& it) { root.setWorkerJoined(as_text(it.host)); },
          [&](const history::WorkerLeft& it) { root.setWorkerLeft(as_text(it.reason)); },
          [&](const history::Cancelled&) { root.setCancelled(); },
          [&](const history::Retried&) { root.setRetried(); }},
      value.what);
  return seal(message, record_prefix);
}

namespace {

Result<std::string> short_text(capnp::Text::Reader text, std::string_view what) {
  return read_text(text, what, limits::error_text_bytes);
}

Result<decltype(EventFact::what)> read_what(schema::EventRecord::Reader reader) {
  using What = decltype(EventFact::what);
  using Schema = schema::EventRecord;
  switch (reader.which()) {
    case Schema::SUBMITTED: {
      PREFGRID_ASSIGN(std::string name, short_text(reader.getSubmitted(), "experiment"));
      return What(history::Submitted{std::move(name)});
    }
    case Schema::LEASED:
      return What(history::Leased{});
    case Schema::DONE:
      return What(history::Done{});
    case Schema::FAILED: {
      PREFGRID_ASSIGN(JobFailure failure, read(reader.getFailed()));
      return What(history::Failed{std::move(failure)});
    }
    case Schema::QUARANTINED:
      return What(history::Quarantined{});
    case Schema::LEASE_LOST:
      return What(history::LeaseLost{});
    case Schema::LEASE_RETURNED:
      return What(history::LeaseReturned{});
    case Schema::RESULT_DROPPED: {
      PREFGRID_ASSIGN(std::string reason, short_text(reader.getResultDropped(), "reason"));
      return What(history::ResultDropped{std::move(reason)});
    }
    case Schema::WORKER_JOINED: {
      PREFGRID_ASSIGN(std::string host, short_text(reader.getWorkerJoined(), "host"));
      return What(history::WorkerJoined{std::move(host)});
    }
    case Schema::WORKER_LEFT: {
      PREFGRID_ASSIGN(std::string reason, short_text(reader.getWorkerLeft(), "reason"));
      return What(history::WorkerLeft{std::move(reason)});
    }
    case Schema::CANCELLED:
      return What(history::Cancelled{});
    case Schema::RETRIED:
      return What(history::Retried{});
  }
  return unknown_kind("an event");
}

}  // namespace

Result<EventFact> decode_event(std::string_view bytes) {
  return unseal_record<schema::EventRecord>(
      bytes, "event", [](schema::EventRecord::Reader reader) -> Result<EventFact> {
        EventFact fact;
        fact.wall = WallMs{reader.getWallMs()};
        if (reader.getJob().size() > 0) {
          PREFGRID_ASSIGN(fact.job, read_id<JobKey>(reader.getJob(), "job"));
        }
        fact.attempt = reader.getAttempt();
        PREFGRID_ASSIGN(fact.worker, read_text(reader.getWorker(), "worker", limits::name_bytes));
        PREFGRID_ASSIGN(fact.what, read_what(reader));
        return fact;
      });
}

std::string encode_record(const ResultFact& value) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::ResultRecord>();
  write(root.initResult(), value.result);
  root.setAttempt(value.attempt);
  root.setWorker(as_text(value.worker));
  root.setCommittedWallMs(number(value.committed));
  return seal(message, record_prefix);
}

Result<ResultFact> decode_result(const JobKey& key, std::string_view bytes) {
  return unseal_record<schema::ResultRecord>(
      bytes, "result", [&key](schema::ResultRecord::Reader reader) -> Result<ResultFact> {
        ResultFact fact;
        fact.job = key;
        PREFGRID_ASSIGN(fact.result, read(reader.getResult()));
        fact.attempt = reader.getAttempt();
        PREFGRID_ASSIGN(fact.worker, read_text(reader.getWorker(), "worker", limits::name_bytes));
        fact.committed = WallMs{reader.getCommittedWallMs()};
        return fact;
      });
}

std::string encode_raw(std::string_view bytes) {
  std::string value(record_prefix);
  value.append(bytes);
  const std::uint32_t sum = crc32c(value);
  for (int byte = 0; byte < 4; ++byte) value.push_back(static_cast<char>(sum >> (8 * byte)));
  return value;
}

Result<std::string> decode_raw(std::string_view bytes) {
  if (bytes.size() < record_prefix.size() + checksum_bytes) {
    return Error{ErrorCode::io, "a record is cut short"};
  }
  const std::string_view content = bytes.substr(1, bytes.size() - 1 - checksum_bytes);
  if (encode_raw(content) != bytes) {
    return bytes[0] > record_version
               ? Error{ErrorCode::conflict, "a record made by a newer prefgrid"}
               : Error{ErrorCode::io, "a record's checksum does not match its content"};
  }
  return std::string(content);
}

}  // namespace prefgrid
