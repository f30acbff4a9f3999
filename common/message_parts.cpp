#include "common/message_parts.h"

namespace prefgrid {

void write(schema::LeaseId::Builder builder, const LeaseId& lease) {
  builder.setJob(id_data(lease.job));
  builder.setAttempt(lease.attempt);
}

Result<LeaseId> read(schema::LeaseId::Reader reader) {
  PREFGRID_ASSIGN(const JobKey job, read_id<JobKey>(reader.getJob(), "lease"));
  return LeaseId{job, reader.getAttempt()};
}

void write(capnp::List<schema::LeaseId>::Builder builder, const std::vector<LeaseId>& leases) {
  write_list(builder, leases, [](auto item, const LeaseId& lease) { write(item, lease); });
}

Result<std::vector<LeaseId>> read(capnp::List<schema::LeaseId>::Reader reader) {
  return read_list(reader, "leases", [](schema::LeaseId::Reader item) { return read(item); });
}

void write(capnp::List<schema::KindVersion>::Builder builder,
           const std::vector<KindVersion>& kinds) {
  write_list(builder, kinds, [](schema::KindVersion::Builder item, const KindVersion& kind) {
    item.setKind(as_text(kind.kind));
    item.setVersion(kind.version);
  });
}

Result<std::vector<KindVersion>> read(capnp::List<schema::KindVersion>::Reader reader) {
  return read_list(reader, "kinds", [](schema::KindVersion::Reader item) -> Result<KindVersion> {
    KindVersion kind;
    PREFGRID_ASSIGN(kind.kind, read_text(item.getKind(), "kind", limits::name_bytes));
    kind.version = item.getVersion();
    return kind;
  });
}

void write(schema::Progress::Builder builder, const Progress& progress) {
  write(builder.initLease(), progress.lease);
  builder.setStep(progress.step);
  builder.setTotalSteps(progress.total_steps);
  builder.setHasLoss(progress.loss_nats.has_value());
  builder.setLossNats(progress.loss_nats.value_or(0));
}

Result<Progress> read(schema::Progress::Reader reader) {
  Progress progress;
  PREFGRID_ASSIGN(progress.lease, read(reader.getLease()));
  progress.step = reader.getStep();
  progress.total_steps = reader.getTotalSteps();
  if (reader.getHasLoss()) progress.loss_nats = reader.getLossNats();
  return progress;
}

void write(schema::Failure::Builder builder, const FailureMessage& message) {
  write(builder.initLease(), message.lease);
  write(builder.initFailure(), message.failure);
}

Result<FailureMessage> read(schema::Failure::Reader reader) {
  FailureMessage message;
  PREFGRID_ASSIGN(message.lease, read(reader.getLease()));
  PREFGRID_ASSIGN(message.failure, read(reader.getFailure()));
  return message;
}

capnp::Data::Reader input_data(const InputRef& input) {
  return std::visit([](const auto& id) { return id_data(id); }, input);
}

Result<InputRef> read_input_data(capnp::Data::Reader data, bool is_job) {
  if (is_job) {
    PREFGRID_ASSIGN(const JobKey key, read_id<JobKey>(data, "input job"));
    return InputRef(key);
  }
  PREFGRID_ASSIGN(const ArtifactDigest digest, read_id<ArtifactDigest>(data, "input file"));
  return InputRef(digest);
}

Result<void> check_version(std::uint32_t version) {
  if (version == protocol_version) return {};
  return Error{ErrorCode::conflict, "the peer speaks version " + std::to_string(version) +
                                        " of the protocol, this program version " +
                                        std::to_string(protocol_version) +
                                        ": install the same prefgrid on both sides"};
}

std::string seal_frame(capnp::MessageBuilder& builder, std::string_view what) {
  std::string frame = seal(builder);
  PREFGRID_CHECK(frame.size() <= limits::message_bytes,
                 std::string(what) + " of " + std::to_string(frame.size()) + " bytes");
  return frame;
}

FailureMessage too_large(const LeaseId& lease, std::size_t bytes) {
  JobFailure failure;
  failure.message = "the result takes " + std::to_string(bytes) + " bytes, over the limit of " +
                    std::to_string(limits::message_bytes) +
                    ": report fewer curve points, or write them to an artefact";
  return {lease, std::move(failure)};
}

std::size_t frame_bytes(const JobResult& result) {
  constexpr std::size_t item = 128;  // a struct of ours and the padding of its fields
  std::size_t bytes = 1024;
  for (const Metric& metric : result.metrics) bytes += item + metric.name.size();
  for (const CurvePoint& point : result.curve) bytes += item + point.series.size();
  for (const ArtifactRef& artifact : result.artifacts) {
    bytes += item + artifact.name.size();
    if (artifact.inline_data) bytes += artifact.inline_data->size();
  }
  return bytes;
}

}  // namespace prefgrid
