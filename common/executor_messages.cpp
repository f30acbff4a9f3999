// The agent <-> executor part of common/messages.h.
#include "common/message_parts.h"
#include "common/messages.h"

namespace prefgrid {
namespace {

constexpr std::size_t path_bytes = 4096;  // PATH_MAX

void put(schema::ExecutorMessage::Builder builder, const ExecutorReady& message) {
  auto part = builder.initReady();
  write(part.initKinds(list_size(message.kinds)), message.kinds);
  write(part.initProfile(), message.profile);
  part.setSoftwareVersion(as_text(message.software_version));
}

void put(schema::ExecutorMessage::Builder builder, const Progress& message) {
  write(builder.initProgress(), message);
}

void put(schema::ExecutorMessage::Builder builder, const FailureMessage& message) {
  write(builder.initFailed(), message);
}

void put(schema::ExecutorMessage::Builder builder, const ExecutorFinished& message) {
  // The agent adds a log, and sends the same result on.
  const std::size_t bytes = frame_bytes(message.result) + limits::log_tail_bytes;
  if (bytes > limits::message_bytes) return put(builder, too_large(message.lease, bytes));
  auto part = builder.initFinished();
  write(part.initLease(), message.lease);
  write(part.initResult(), message.result);
}

void put(schema::ExecutorMessage::Builder builder, const RunJob& message) {
  auto part = builder.initRun();
  write(part.initLease(), message.lease);
  write(part.initSpec(), message.spec);
  write_list(part.initInputs(list_size(message.inputs)), message.inputs,
             [](schema::LocalInput::Builder item, const LocalInput& input) {
               item.setName(as_text(input.name));
               item.setId(input_data(input.id));
               item.setIsJob(std::holds_alternative<JobKey>(input.id));
               item.setPath(as_data(input.path));
             });
  part.setOutputDir(as_data(message.output_dir));
}

void put(schema::ExecutorMessage::Builder builder, const StopExecutor&) {
  builder.setStop();
}

Result<ExecutorMessage> get(schema::ExecutorMessage::Ready::Reader reader) {
  ExecutorReady ready;
  PREFGRID_ASSIGN(ready.kinds, read(reader.getKinds()));
  PREFGRID_ASSIGN(ready.profile, read(reader.getProfile()));
  PREFGRID_ASSIGN(ready.software_version,
                  read_text(reader.getSoftwareVersion(), "software version", limits::name_bytes));
  return ExecutorMessage(std::move(ready));
}

Result<ExecutorMessage> get(schema::ExecutorMessage::Finished::Reader reader) {
  ExecutorFinished finished;
  PREFGRID_ASSIGN(finished.lease, read(reader.getLease()));
  PREFGRID_ASSIGN(finished.result, read(reader.getResult()));
  return ExecutorMessage(std::move(finished));
}

Result<LocalInput> get(schema::LocalInput::Reader reader) {
  LocalInput input;
  PREFGRID_ASSIGN(input.name, read_text(reader.getName(), "input name", limits::name_bytes));
  PREFGRID_ASSIGN(input.id, read_input_data(reader.getId(), reader.getIsJob()));
  PREFGRID_ASSIGN(input.path, read_bytes(reader.getPath(), "input path", path_bytes));
  return input;
}

Result<ExecutorMessage> get(schema::ExecutorMessage::Run::Reader reader) {
  RunJob run;
  PREFGRID_ASSIGN(run.lease, read(reader.getLease()));
  PREFGRID_ASSIGN(run.spec, read(reader.getSpec()));
  PREFGRID_ASSIGN(run.inputs, read_list(reader.getInputs(), "job inputs",
                                        [](schema::LocalInput::Reader item) { return get(item); }));
  PREFGRID_ASSIGN(run.output_dir, read_bytes(reader.getOutputDir(), "output folder", path_bytes));
  return ExecutorMessage(std::move(run));
}

template <class Part>
Result<ExecutorMessage> as_message(Result<Part> part) {
  if (!part) return part.error();
  return ExecutorMessage(*std::move(part));
}

Result<ExecutorMessage> get(schema::ExecutorMessage::Reader reader) {
  PREFGRID_TRY(check_version(reader.getVersion()));
  switch (reader.which()) {
    case schema::ExecutorMessage::READY:
      return get(reader.getReady());
    case schema::ExecutorMessage::PROGRESS:
      return as_message(read(reader.getProgress()));
    case schema::ExecutorMessage::FINISHED:
      return get(reader.getFinished());
    case schema::ExecutorMessage::FAILED:
      return as_message(read(reader.getFailed()));
    case schema::ExecutorMessage::RUN:
      return get(reader.getRun());
    case schema::ExecutorMessage::STOP:
      return ExecutorMessage(StopExecutor{});
  }
  return damaged("executor message", "its type is none that this version handles");
}

}  // namespace

std::string encode(const ExecutorMessage& message) {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<schema::ExecutorMessage>();
  root.setVersion(protocol_version);
  std::visit([&](const auto& alternative) { put(root, alternative); }, message);
  return seal_frame(builder, "an executor message");
}

Result<ExecutorMessage> decode_executor(std::string_view body) {
  if (body.size() > limits::message_bytes) {
    return damaged("executor message", "it is over the size limit");
  }
  return unseal<schema::ExecutorMessage>(
      body, 0, "executor message",
      [](schema::ExecutorMessage::Reader reader) { return get(reader); });
}

}  // namespace prefgrid
