// The keys of the column families and the two values that are not Cap'n Proto
// (docs/store-format.md). Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.h"
#include "common/result.h"

namespace prefgrid {

inline constexpr std::string_view meta_key = "format";
inline constexpr std::string_view sequence_key = "sequence";

// Big-endian: the order of the bytes is the order of the numbers.
std::string number_key(std::uint64_t number);
std::optional<std::uint64_t> number_of_key(std::string_view key);

template <class Tag>
std::string id_key(const Sha256Id<Tag>& id) {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}
template <class Id>
std::optional<Id> id_of_key(std::string_view key) {
  Id id;
  if (key.size() != id.bytes.size()) return std::nullopt;
  std::memcpy(id.bytes.data(), key.data(), key.size());
  return id;
}

// An artefact's value: where its content is.
struct ArtifactPlace {
  std::uint64_t size = 0;
  bool in_file = false;      // DIR/artifacts/ab/HEX
  std::string_view content;  // else; a view into the value
};
std::string encode_place(std::uint64_t size);        // in a file
std::string encode_place(std::string_view content);  // here
Result<ArtifactPlace> decode_place(std::string_view bytes);

// DIR/acknowledged: how far the store had answered for (store.cpp).
struct Acknowledged {
  std::uint64_t last_event = 0;
  std::uint64_t result_count = 0;
  std::uint64_t artifact_count = 0;
};
std::string encode_acknowledged(const Acknowledged& value);
std::optional<Acknowledged> decode_acknowledged(std::string_view bytes);

}  // namespace prefgrid
