#include "common/messages.h"

#include "common/message_parts.h"
#include "common/text.h"

namespace prefgrid {
namespace {

void put(schema::Message::Builder builder, const WorkerHello& message) {
  auto hello = builder.initWorkerHello();
  hello.setName(as_text(message.name));
  hello.setHost(as_text(message.host));
  hello.setPid(message.pid);
  hello.setExecutors(message.executors);
  write(hello.initKinds(list_size(message.kinds)), message.kinds);
  write(hello.initProfile(), message.profile);
  write(hello.initHeld(list_size(message.held)), message.held);
  hello.setSoftwareVersion(as_text(message.software_version));
  hello.setWaitsFor(as_text(cut_text(message.waits_for, limits::error_text_bytes)));
}

void put(schema::Message::Builder builder, const Heartbeat&) {
  builder.setHeartbeat();
}

void put(schema::Message::Builder builder, const Progress& message) {
  write(builder.initProgress(), message);
}

void put(schema::Message::Builder builder, const FailureMessage& message) {
  write(builder.initFailure(), message);
}

void put(schema::Message::Builder builder, const ResultMessage& message) {
  const std::size_t bytes = frame_bytes(message.result) + limits::log_tail_bytes;
  if (bytes > limits::message_bytes) return put(builder, too_large(message.lease, bytes));
  auto result = builder.initResult();
  write(result.initLease(), message.lease);
  write(result.initResult(), message.result);
  const std::size_t tail = std::min(message.log.size(), limits::log_tail_bytes);
  result.setLog(as_data(std::string_view(message.log).substr(message.log.size() - tail)));
}

void put(schema::Message::Builder builder, const LeaseReturned& message) {
  write(builder.initLeaseReturned(), message.lease);
}

void put(schema::Message::Builder builder, const WorkerWaits& message) {
  builder.setWorkerWaits(as_text(cut_text(message.reason, limits::error_text_bytes)));
}

void put(schema::Message::Builder builder, const Goodbye&) {
  builder.setGoodbye();
}

void put(schema::Message::Builder builder, const Welcome& message) {
  auto welcome = builder.initWelcome();
  welcome.setSoftwareVersion(as_text(message.software_version));
  welcome.setBulkEndpoint(as_text(message.bulk_endpoint));
  welcome.setHeartbeatMs(message.heartbeat_ms);
  write(welcome.initDropped(list_size(message.dropped)), message.dropped);
}

void put(schema::Message::Builder builder, const Refused& message) {
  builder.setRefused(as_text(cut_text(message.reason, limits::error_text_bytes)));
}

void put_resolved(schema::ResolvedInput::Builder builder, const ResolvedInput& input) {
  builder.setName(as_text(input.name));
  builder.setId(input_data(input.id));
  builder.setIsJob(std::holds_alternative<JobKey>(input.id));
  write_list(builder.initArtifacts(list_size(input.artifacts)), input.artifacts,
             [](auto item, const ArtifactRef& artifact) { write(item, artifact); });
}

void put(schema::Message::Builder builder, const Leases& message) {
  write_list(builder.initLeases(list_size(message.leases)), message.leases,
             [](schema::Lease::Builder item, const Lease& lease) {
               write(item.initId(), lease.id);
               write(item.initSpec(), lease.spec);
               write_list(item.initInputs(list_size(lease.inputs)), lease.inputs, put_resolved);
               item.setAffinity(lease.affinity);
             });
}

void put(schema::Message::Builder builder, const Settled& message) {
  write(builder.initSettled(), message.lease);
}

void put(schema::Message::Builder builder, const CancelLease& message) {
  write(builder.initCancelLease(), message.lease);
}

void put(schema::Message::Builder builder, const Request& message) {
  auto request = builder.initRequest();
  request.setId(message.id);
  request.setVerb(as_text(message.verb));
  write(request.initArguments(list_size(message.arguments)), message.arguments);
}

void put(schema::Message::Builder builder, const Reply& message) {
  auto reply = builder.initReply();
  reply.setId(message.id);
  reply.setLast(message.last);
  if (const auto* value = std::get_if<Value>(&message.outcome)) {
    write(reply.initValue(), *value);
  } else {
    const Error& problem = std::get<Error>(message.outcome);
    auto error = reply.initError();
    error.setCode(static_cast<std::uint16_t>(problem.code));
    error.setMessage(as_text(cut_text(problem.message, limits::spec_file_bytes)));
  }
}

Result<WorkerHello> get(schema::WorkerHello::Reader reader) {
  WorkerHello hello;
  constexpr std::size_t most = limits::name_bytes;
  PREFGRID_ASSIGN(hello.name, read_text(reader.getName(), "worker name", most));
  if (hello.name.empty()) return damaged("hello", "the worker's name is empty");
  PREFGRID_ASSIGN(hello.host, read_text(reader.getHost(), "worker host", most));
  hello.pid = reader.getPid();
  hello.executors = reader.getExecutors();
  if (hello.executors == 0) return damaged("hello", "a worker without executors");
  PREFGRID_ASSIGN(hello.kinds, read(reader.getKinds()));
  PREFGRID_ASSIGN(hello.profile, read(reader.getProfile()));
  PREFGRID_ASSIGN(hello.held, read(reader.getHeld()));
  PREFGRID_ASSIGN(hello.software_version,
                  read_text(reader.getSoftwareVersion(), "software version", most));
  PREFGRID_ASSIGN(hello.waits_for,
                  read_text(reader.getWaitsFor(), "reason", limits::error_text_bytes));
  return hello;
}

Result<ResultMessage> get(schema::Result::Reader reader) {
  ResultMessage message;
  PREFGRID_ASSIGN(message.lease, read(reader.getLease()));
  PREFGRID_ASSIGN(message.result, read(reader.getResult()));
  PREFGRID_ASSIGN(message.log, read_bytes(reader.getLog(), "log", limits::log_tail_bytes));
  return message;
}

Result<Welcome> get(schema::Welcome::Reader reader) {
  Welcome welcome;
  constexpr std::size_t most = limits::name_bytes;
  PREFGRID_ASSIGN(welcome.software_version,
                  read_text(reader.getSoftwareVersion(), "software version", most));
  PREFGRID_ASSIGN(welcome.bulk_endpoint,
                  read_text(reader.getBulkEndpoint(), "bulk endpoint", most));
  welcome.heartbeat_ms = reader.getHeartbeatMs();
  if (welcome.heartbeat_ms == 0) return damaged("welcome", "a heartbeat every 0 ms");
  PREFGRID_ASSIGN(welcome.dropped, read(reader.getDropped()));
  return welcome;
}

Result<ResolvedInput> get(schema::ResolvedInput::Reader reader) {
  ResolvedInput input;
  PREFGRID_ASSIGN(input.name, read_text(reader.getName(), "input name", limits::name_bytes));
  PREFGRID_ASSIGN(input.id, read_input_data(reader.getId(), reader.getIsJob()));
  PREFGRID_ASSIGN(input.artifacts,
                  read_list(reader.getArtifacts(), "input artefacts",
                            [](schema::ArtifactRef::Reader item) { return read(item); }));
  return input;
}

Result<Lease> get(schema::Lease::Reader reader) {
  Lease lease;
  PREFGRID_ASSIGN(lease.id, read(reader.getId()));
  PREFGRID_ASSIGN(lease.spec, read(reader.getSpec()));
  PREFGRID_ASSIGN(lease.inputs,
                  read_list(reader.getInputs(), "lease inputs",
                            [](schema::ResolvedInput::Reader item) { return get(item); }));
  lease.affinity = reader.getAffinity();
  return lease;
}

Result<Leases> get(capnp::List<schema::Lease>::Reader reader) {
  Leases leases;
  PREFGRID_ASSIGN(leases.leases, read_list(reader, "leases",
                                           [](schema::Lease::Reader item) { return get(item); }));
  return leases;
}

Result<Request> get(schema::Request::Reader reader) {
  Request request;
  request.id = reader.getId();
  PREFGRID_ASSIGN(request.verb, read_text(reader.getVerb(), "verb", limits::name_bytes));
  PREFGRID_ASSIGN(request.arguments, read(reader.getArguments()));
  return request;
}

Result<Reply> get(schema::Reply::Reader reader) {
  Reply reply;
  reply.id = reader.getId();
  reply.last = reader.getLast();
  if (reader.isValue()) {
    PREFGRID_ASSIGN(reply.outcome, read(reader.getValue()));
  } else if (reader.isError()) {
    const auto error = reader.getError();
    if (error.getCode() > static_cast<std::uint16_t>(ErrorCode::out_of_memory)) {
      return damaged("reply", "error code " + std::to_string(error.getCode()));
    }
    PREFGRID_ASSIGN(std::string text, read_text(error.getMessage(), "error text"));
    reply.outcome = Error{static_cast<ErrorCode>(error.getCode()), std::move(text)};
  } else {
    return damaged("reply", "neither a value nor an error");
  }
  return reply;
}

// Wraps what holds nothing but a lease.
template <class Wrapper>
Result<Message> lease_in(schema::LeaseId::Reader reader) {
  PREFGRID_ASSIGN(const LeaseId lease, read(reader));
  return Message(Wrapper{lease});
}

template <class Part>
Result<Message> as_message(Result<Part> part) {
  if (!part) return part.error();
  return Message(*std::move(part));
}

Result<Message> get(schema::Message::Reader reader) {
  PREFGRID_TRY(check_version(reader.getVersion()));
  switch (reader.which()) {
    case schema::Message::WORKER_HELLO:
      return as_message(get(reader.getWorkerHello()));
    case schema::Message::HEARTBEAT:
      return Message(Heartbeat{});
    case schema::Message::PROGRESS:
      return as_message(read(reader.getProgress()));
    case schema::Message::RESULT:
      return as_message(get(reader.getResult()));
    case schema::Message::FAILURE:
      return as_message(read(reader.getFailure()));
    case schema::Message::LEASE_RETURNED:
      return lease_in<LeaseReturned>(reader.getLeaseReturned());
    case schema::Message::WORKER_WAITS: {
      PREFGRID_ASSIGN(std::string reason,
                      read_text(reader.getWorkerWaits(), "reason", limits::error_text_bytes));
      return Message(WorkerWaits{std::move(reason)});
    }
    case schema::Message::GOODBYE:
      return Message(Goodbye{});
    case schema::Message::WELCOME:
      return as_message(get(reader.getWelcome()));
    case schema::Message::REFUSED: {
      PREFGRID_ASSIGN(std::string reason,
                      read_text(reader.getRefused(), "reason", limits::error_text_bytes));
      return Message(Refused{std::move(reason)});
    }
    case schema::Message::LEASES:
      return as_message(get(reader.getLeases()));
    case schema::Message::SETTLED:
      return lease_in<Settled>(reader.getSettled());
    case schema::Message::CANCEL_LEASE:
      return lease_in<CancelLease>(reader.getCancelLease());
    case schema::Message::REQUEST:
      return as_message(get(reader.getRequest()));
    case schema::Message::REPLY:
      return as_message(get(reader.getReply()));
    case schema::Message::CHECKPOINT_WANTED:
    case schema::Message::CHECKPOINT:
    case schema::Message::CHECKPOINT_STORED:
      break;
  }
  return damaged("message", "its type " + std::to_string(static_cast<int>(reader.which())) +
                                " is none that this version handles");
}

}  // namespace

std::string encode(const Message& message) {
  const auto frame_of = [](const Message& each) {
    capnp::MallocMessageBuilder builder;
    auto root = builder.initRoot<schema::Message>();
    root.setVersion(protocol_version);
    std::visit([&](const auto& alternative) { put(root, alternative); }, each);
    return seal(builder);
  };
  std::string frame = frame_of(message);
  const auto* reply = std::get_if<Reply>(&message);
  if (frame.size() > limits::message_bytes && reply != nullptr) {
    Error error{ErrorCode::invalid_input,
                "the answer takes " + std::to_string(frame.size()) + " bytes, over the limit of " +
                    std::to_string(limits::message_bytes) + ": ask for less at once"};
    frame = frame_of(Reply{reply->id, std::move(error), true});
  }
  PREFGRID_CHECK(frame.size() <= limits::message_bytes,
                 "a message of " + std::to_string(frame.size()) + " bytes");
  return frame;
}

Result<Message> decode_message(std::string_view frame) {
  if (frame.size() > limits::message_bytes) return damaged("message", "it is over the size limit");
  return unseal<schema::Message>(frame, 0, "message",
                                 [](schema::Message::Reader reader) { return get(reader); });
}

}  // namespace prefgrid
