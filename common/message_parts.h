// What the three message families (control, bulk, executor) share. Only common/*messages.cpp
// include this. Pure functions; the read() functions may throw what Cap'n Proto throws: call them
// inside unseal().
#pragma once

#include <capnp/message.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/messages.h"
#include "common/schema_convert.h"
#include "schemas/protocol.capnp.h"

namespace prefgrid {

void write(schema::LeaseId::Builder builder, const LeaseId& lease);
Result<LeaseId> read(schema::LeaseId::Reader reader);

void write(capnp::List<schema::LeaseId>::Builder builder, const std::vector<LeaseId>& leases);
Result<std::vector<LeaseId>> read(capnp::List<schema::LeaseId>::Reader reader);

void write(capnp::List<schema::KindVersion>::Builder builder,
           const std::vector<KindVersion>& kinds);
Result<std::vector<KindVersion>> read(capnp::List<schema::KindVersion>::Reader reader);

void write(schema::Progress::Builder builder, const Progress& progress);
Result<Progress> read(schema::Progress::Reader reader);

void write(schema::Failure::Builder builder, const FailureMessage& message);
Result<FailureMessage> read(schema::Failure::Reader reader);

// An InputRef as 32 bytes and a flag.
capnp::Data::Reader input_data(const InputRef& input);
Result<InputRef> read_input_data(capnp::Data::Reader data, bool is_job);

// conflict, naming both versions, if the peer speaks another one.
Result<void> check_version(std::uint32_t version);

// Seals; a frame over limits::message_bytes is a bug of whoever made the message.
std::string seal_frame(capnp::MessageBuilder& builder, std::string_view what);

// A result that is too large for a frame fails its job instead of its carrier.
FailureMessage too_large(const LeaseId& lease, std::size_t bytes);

// Roughly the bytes that a value takes in a frame, never less.
std::size_t frame_bytes(const JobResult& result);

}  // namespace prefgrid
