// The bulk endpoint's part of common/messages.h.
#include "common/message_parts.h"
#include "common/messages.h"
#include "common/text.h"

namespace prefgrid {
namespace {

void put(schema::BulkMessage::Builder builder, const BulkPut& message) {
  auto part = builder.initPut();
  part.setDigest(id_data(message.digest));
  part.setSize(message.size);
  part.setOffset(message.offset);
  part.setData(as_data(message.data));
}

void put(schema::BulkMessage::Builder builder, const BulkPutAck& message) {
  auto part = builder.initPutAck();
  part.setDigest(id_data(message.digest));
  part.setReceived(message.received);
  part.setComplete(message.complete);
  part.setProblem(as_text(cut_text(message.problem, limits::error_text_bytes)));
}

void put(schema::BulkMessage::Builder builder, const BulkGet& message) {
  auto part = builder.initGet();
  part.setDigest(id_data(message.digest));
  part.setOffset(message.offset);
  part.setCredit(message.credit);
}

void put(schema::BulkMessage::Builder builder, const BulkChunk& message) {
  auto part = builder.initChunk();
  part.setDigest(id_data(message.digest));
  part.setSize(message.size);
  part.setOffset(message.offset);
  part.setData(as_data(message.data));
  part.setProblem(as_text(cut_text(message.problem, limits::error_text_bytes)));
}

// The chunk lies inside its artefact (no sum here can overflow).
Result<void> check_range(std::uint64_t size, std::uint64_t offset, std::size_t bytes) {
  if (offset <= size && bytes <= size - offset) return {};
  return damaged("chunk", std::to_string(bytes) + " bytes at " + std::to_string(offset) +
                              " of an artefact of " + std::to_string(size));
}

Result<BulkMessage> get(schema::BulkMessage::Put::Reader reader) {
  BulkPut put;
  PREFGRID_ASSIGN(put.digest, read_id<ArtifactDigest>(reader.getDigest(), "upload"));
  put.size = reader.getSize();
  put.offset = reader.getOffset();
  PREFGRID_ASSIGN(put.data, read_bytes(reader.getData(), "chunk", limits::chunk_bytes));
  PREFGRID_TRY(check_range(put.size, put.offset, put.data.size()));
  return BulkMessage(std::move(put));
}

Result<BulkMessage> get(schema::BulkMessage::PutAck::Reader reader) {
  BulkPutAck ack;
  PREFGRID_ASSIGN(ack.digest, read_id<ArtifactDigest>(reader.getDigest(), "upload"));
  ack.received = reader.getReceived();
  ack.complete = reader.getComplete();
  PREFGRID_ASSIGN(ack.problem, read_text(reader.getProblem(), "problem", limits::error_text_bytes));
  return BulkMessage(std::move(ack));
}

Result<BulkMessage> get(schema::BulkMessage::Get::Reader reader) {
  BulkGet get;
  PREFGRID_ASSIGN(get.digest, read_id<ArtifactDigest>(reader.getDigest(), "download"));
  get.offset = reader.getOffset();
  get.credit = reader.getCredit();
  return BulkMessage(get);
}

Result<BulkMessage> get(schema::BulkMessage::Chunk::Reader reader) {
  BulkChunk chunk;
  PREFGRID_ASSIGN(chunk.digest, read_id<ArtifactDigest>(reader.getDigest(), "download"));
  chunk.size = reader.getSize();
  chunk.offset = reader.getOffset();
  PREFGRID_ASSIGN(chunk.data, read_bytes(reader.getData(), "chunk", limits::chunk_bytes));
  PREFGRID_ASSIGN(chunk.problem,
                  read_text(reader.getProblem(), "problem", limits::error_text_bytes));
  PREFGRID_TRY(check_range(chunk.size, chunk.offset, chunk.data.size()));
  return BulkMessage(std::move(chunk));
}

Result<BulkMessage> get(schema::BulkMessage::Reader reader) {
  PREFGRID_TRY(check_version(reader.getVersion()));
  switch (reader.which()) {
    case schema::BulkMessage::PUT:
      return get(reader.getPut());
    case schema::BulkMessage::PUT_ACK:
      return get(reader.getPutAck());
    case schema::BulkMessage::GET:
      return get(reader.getGet());
    case schema::BulkMessage::CHUNK:
      return get(reader.getChunk());
  }
  return damaged("bulk message", "its type is none that this version handles");
}

}  // namespace

std::string encode(const BulkMessage& message) {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<schema::BulkMessage>();
  root.setVersion(protocol_version);
  std::visit([&](const auto& alternative) { put(root, alternative); }, message);
  return seal_frame(builder, "a bulk message");
}

Result<BulkMessage> decode_bulk(std::string_view frame) {
  if (frame.size() > limits::message_bytes) {
    return damaged("bulk message", "it is over the size limit");
  }
  return unseal<schema::BulkMessage>(
      frame, 0, "bulk message", [](schema::BulkMessage::Reader reader) { return get(reader); });
}

}  // namespace prefgrid
