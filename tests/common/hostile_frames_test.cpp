// Every decoder against damaged and invented frames: it may say no, it may not crash or throw.
#include <capnp/message.h>
#include <doctest/doctest.h>

#include <functional>

#include "common/crc32c.h"
#include "common/limits.h"
#include "common/random.h"
#include "common/schema_convert.h"
#include "schemas/protocol.capnp.h"
#include "schemas/store.capnp.h"
#include "tests/common/sample_messages.h"
#include "tests/support/seed.h"

namespace prefgrid {
namespace {

struct Frame {
  std::string bytes;
  // Whether the bytes decode; also encodes what they decode to.
  std::function<bool(std::string_view)> accepts;
};

std::vector<Frame> sample_frames() {
  std::vector<Frame> frames;
  for (const Message& message : sample_messages()) {
    frames.push_back({encode(message), [](std::string_view bytes) {
                        const auto decoded = decode_message(bytes);
                        return decoded.ok() && !encode(*decoded).empty();
                      }});
  }
  for (const BulkMessage& message : sample_bulk_messages()) {
    frames.push_back({encode(message), [](std::string_view bytes) {
                        const auto decoded = decode_bulk(bytes);
                        return decoded.ok() && !encode(*decoded).empty();
                      }});
  }
  for (const ExecutorMessage& message : sample_executor_messages()) {
    frames.push_back({encode(message), [](std::string_view bytes) {
                        const auto decoded = decode_executor(bytes);
                        return decoded.ok() && !encode(*decoded).empty();
                      }});
  }
  return frames;
}

// Makes the checksum right again, so that damage reaches what lies behind it.
std::string resealed(std::string frame) {
  if (frame.size() < 4) return frame;
  const std::size_t body = frame.size() - 4;
  const std::uint32_t crc = crc32c(std::string_view(frame).substr(0, body));
  for (std::size_t i = 0; i < 4; ++i) frame[body + i] = static_cast<char>(crc >> (8 * i) & 0xFF);
  return frame;
}

std::string sealed_message(const std::function<void(schema::Message::Builder)>& fill) {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<schema::Message>();
  root.setVersion(protocol_version);
  fill(root);
  return seal(builder);
}

}  // namespace

TEST_CASE("a frame cut at any length is refused, with a right checksum too") {
  for (const Frame& frame : sample_frames()) {
    REQUIRE(frame.accepts(frame.bytes));
    for (std::size_t length = 0; length < frame.bytes.size(); ++length) {
      const std::string cut = frame.bytes.substr(0, length);
      REQUIRE_FALSE(frame.accepts(cut));
      REQUIRE_FALSE(frame.accepts(resealed(cut)));
    }
    REQUIRE_FALSE(frame.accepts(frame.bytes + "x"));
    REQUIRE_FALSE(frame.accepts(resealed(frame.bytes + std::string(8, '\0'))));
  }
}

TEST_CASE("one flipped bit anywhere is noticed") {
  for (const Frame& frame : sample_frames()) {
    for (std::size_t bit = 0; bit < 8 * frame.bytes.size(); ++bit) {
      std::string damaged = frame.bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      REQUIRE_FALSE(frame.accepts(damaged));
    }
  }
}

TEST_CASE("it is the checksum that notices: with a right one, many flipped bits pass") {
  std::size_t passed = 0, flips = 0;
  for (const Frame& frame : sample_frames()) {
    for (std::size_t bit = 0; bit < 8 * frame.bytes.size(); ++bit) {
      std::string damaged = frame.bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      passed += frame.accepts(resealed(damaged)) ? 1 : 0;
      ++flips;
    }
  }
  MESSAGE(passed << " of " << flips << " resealed single-bit flips decode");
  CHECK(passed > flips / 20);
  CHECK(passed < flips);
}

TEST_CASE("frames with several random changes and a right checksum never crash a decoder") {
  RandomStream random(test_seed(), "hostile frames");
  const std::vector<Frame> frames = sample_frames();
  for (int round = 0; round < 100'000; ++round) {
    const Frame& frame = frames[random.below(frames.size())];
    std::string bytes = frame.bytes;
    for (std::uint64_t change = 0; change <= random.below(6); ++change) {
      const std::size_t word = 8 * random.below(bytes.size() / 8);
      const std::size_t place = random.below(bytes.size());
      switch (random.below(5)) {
        case 0:
          bytes[place] = static_cast<char>(random.bits());
          break;
        case 1:
          bytes[place] = static_cast<char>(random.below(2) == 0 ? 0 : 0xFF);
          break;
        case 2:
          bytes.replace(word, 8, bytes.substr(8 * random.below(bytes.size() / 8), 8));
          break;
        case 3:
          bytes[word] = static_cast<char>(bytes[word] + 4);
          break;  // a pointer's target
        default:
          bytes[word + 4] = static_cast<char>(random.below(16));
          break;  // its kind
      }
    }
    frame.accepts(resealed(std::move(bytes)));
  }
}

TEST_CASE("random bytes of every length never crash a decoder") {
  RandomStream random(test_seed(), "random bytes");
  for (std::size_t length = 0; length < 600; ++length) {
    std::string bytes(length, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.bits());
    CHECK_FALSE(decode_message(bytes).ok());
    for (std::size_t i = 0; i < 8 && i < length; ++i) bytes[i] = i == 4 ? char(length / 8) : 0;
    decode_message(resealed(bytes)).ok();
    decode_bulk(resealed(bytes)).ok();
    decode_executor(resealed(bytes)).ok();
  }
  CHECK_FALSE(decode_message(std::string(limits::message_bytes + 1, 'x')).ok());
}

TEST_CASE("a peer of another version is told both versions") {
  const auto decoded = decode_message(sealed_message([](auto root) {
    root.setVersion(7);
    root.setHeartbeat();
  }));
  REQUIRE_FALSE(decoded.ok());
  CHECK(decoded.error().code == ErrorCode::conflict);
  CHECK(decoded.error().message ==
        "the peer speaks version 7 of the protocol, this program version 1: install the same "
        "prefgrid on both sides");
  capnp::MallocMessageBuilder executor;
  executor.initRoot<schema::ExecutorMessage>().setVersion(2);
  CHECK(decode_executor(seal(executor)).error().code == ErrorCode::conflict);
  capnp::MallocMessageBuilder bulk;
  bulk.initRoot<schema::BulkMessage>().setVersion(2);
  CHECK(decode_bulk(seal(bulk)).error().code == ErrorCode::conflict);
}

TEST_CASE("message types that this version does not handle are refused by number") {
  const auto decoded =
      decode_message(sealed_message([](auto root) { root.initCheckpointWanted(); }));
  REQUIRE_FALSE(decoded.ok());
  CHECK(decoded.error().code == ErrorCode::invalid_input);
  CHECK(decoded.error().message.find("its type 13") != std::string::npos);
}

TEST_CASE("maps and inputs out of order or with a key twice are refused") {
  const auto with_keys = [](std::vector<const char*> keys) {
    return decode_message(sealed_message([&](auto root) {
      auto arguments = root.initRequest().initArguments(static_cast<unsigned>(keys.size()));
      for (unsigned i = 0; i < keys.size(); ++i) arguments[i].setName(keys[i]);
    }));
  };
  CHECK(with_keys({"a", "b"}).ok());
  CHECK_FALSE(with_keys({"b", "a"}).ok());
  CHECK_FALSE(with_keys({"a", "a"}).ok());
  const auto with_inputs = [](std::vector<const char*> names) {
    return decode_message(sealed_message([&](auto root) {
      auto lease = root.initLeases(1)[0];
      lease.initId().setJob(id_data(JobKey{}));
      auto inputs = lease.initSpec().initInputs(static_cast<unsigned>(names.size()));
      for (unsigned i = 0; i < names.size(); ++i) {
        inputs[i].setName(names[i]);
        inputs[i].setFile(id_data(ArtifactDigest{}));
      }
    }));
  };
  CHECK(with_inputs({"a", "b"}).ok());
  CHECK_FALSE(with_inputs({"b", "a"}).ok());
  CHECK_FALSE(with_inputs({"a", "a"}).ok());
}

TEST_CASE("values are read to the depth limit and refused beyond, without a deep stack") {
  const auto nested = [](std::size_t depth) {
    return sealed_message([&](auto root) {
      schema::Value::Builder value = root.initReply().initValue();
      for (std::size_t i = 0; i < depth; ++i) value = value.initList(1)[0];
      value.setInteger(1);
    });
  };
  CHECK(decode_message(nested(limits::value_depth)).ok());
  CHECK_FALSE(decode_message(nested(limits::value_depth + 1)).ok());
  CHECK_FALSE(decode_message(nested(100'000)).ok());
  Value deepest = 1;
  for (std::size_t i = 0; i < limits::value_depth; ++i) {
    deepest = i % 2 == 0 ? Value(ValueList{deepest}) : Value(ValueMap{{"k", deepest}});
  }
  CHECK(decode_message(encode(Message(Reply{1, deepest, true}))).ok());
}

TEST_CASE("a small frame whose pointers all lead to one large list is not worth its weight") {
  // Every pointer of an outer list is made to point at the inner list of the first.
  const unsigned outer = 5'000, inner = 4'000, element_words = 3;
  capnp::MallocMessageBuilder builder(8 * (outer + inner));
  auto root = builder.initRoot<schema::Message>();
  root.setVersion(protocol_version);
  auto list = root.initReply().initValue().initList(outer);
  for (unsigned i = 0; i < outer; ++i) list[i].initList(i == outer - 1 ? inner : 0);
  std::string frame = seal(builder);
  // Find the last element's pointer (a list of structs, so many words), and copy it back.
  REQUIRE(decode_message(frame).ok());
  const auto word = [&](std::size_t i) {
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < 8; ++k) {
      value |= std::uint64_t{static_cast<unsigned char>(frame[8 * i + k])} << (8 * k);
    }
    return value;
  };
  std::size_t last = 0;
  const std::size_t words = (frame.size() - 4) / 8;
  for (std::size_t i = 0; i < words && last == 0; ++i) {
    const bool inner_list = (word(i) & 3) == 1 && word(i) >> 32 == (inner * element_words << 3 | 7);
    if (inner_list) last = i;
  }
  REQUIRE(last > element_words * (outer - 1));
  for (std::size_t back = 1; back < outer; ++back) {
    const std::size_t place = last - element_words * back;
    const std::uint64_t pointer = word(last) + (std::uint64_t{element_words * back} << 2);
    for (std::size_t k = 0; k < 8; ++k) {
      frame[8 * place + k] = static_cast<char>(pointer >> (8 * k) & 0xFF);
    }
  }
  const auto decoded = decode_message(resealed(frame));
  REQUIRE_FALSE(decoded.ok());
  CHECK(decoded.error().message.find("limit") != std::string::npos);
}

TEST_CASE("a record behind a prefix is sealed with it, and opens with it") {
  capnp::MallocMessageBuilder builder;
  auto record = builder.initRoot<schema::ResultRecord>();
  write(record.initResult(), sample_result());
  record.setWorker("w");
  const std::string bytes = seal(builder, "\x01");
  const auto open = [](std::string_view sealed) {
    return unseal<schema::ResultRecord>(
        sealed, 1, "result record", [](schema::ResultRecord::Reader reader) -> Result<std::string> {
          PREFGRID_ASSIGN(const JobResult result, read(reader.getResult()));
          if (result.metrics.size() != 2) return damaged("result record", "metrics");
          return read_text(reader.getWorker(), "worker");
        });
  };
  CHECK(bytes[0] == 1);
  CHECK(open(bytes).value() == "w");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged_bytes = bytes;
    damaged_bytes[i] = static_cast<char>(damaged_bytes[i] ^ 0x10);
    REQUIRE_FALSE(open(damaged_bytes).ok());
    REQUIRE_FALSE(open(bytes.substr(0, i)).ok());
  }
  CHECK(open("").error().message == "result record cannot be read: 0 bytes are too few");
}

}  // namespace prefgrid
