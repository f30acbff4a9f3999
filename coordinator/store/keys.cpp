#include "coordinator/store/keys.h"

#include "common/crc32c.h"

namespace prefgrid {
namespace {

constexpr char place_version = 1;
constexpr std::size_t place_header_bytes = 1 + 1 + 8 + 4;
constexpr std::string_view acknowledged_magic = "PGACKD01";

void append_u64(std::string& to, std::uint64_t number) {
  for (int byte = 0; byte < 8; ++byte) to.push_back(static_cast<char>(number >> (8 * byte)));
}

std::uint64_t read_u64(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t byte = 0; byte < 8; ++byte) {
    number |= std::uint64_t{static_cast<std::uint8_t>(bytes[byte])} << (8 * byte);
  }
  return number;
}

void append_checksum(std::string& to) {
  const std::uint32_t sum = crc32c(to);
  for (int byte = 0; byte < 4; ++byte) to.push_back(static_cast<char>(sum >> (8 * byte)));
}

bool checksum_holds(std::string_view covered, std::string_view stored) {
  std::string copy(covered);
  append_checksum(copy);
  return std::string_view(copy).substr(covered.size()) == stored;
}

std::string place_header(bool in_file, std::uint64_t size) {
  std::string value{place_version, static_cast<char>(in_file ? 1 : 0)};
  append_u64(value, size);
  append_checksum(value);
  return value;
}

}  // namespace

std::string number_key(std::uint64_t number) {
  std::string key;
  for (int byte = 7; byte >= 0; --byte) key.push_back(static_cast<char>(number >> (8 * byte)));
  return key;
}

std::optional<std::uint64_t> number_of_key(std::string_view key) {
  if (key.size() != 8) return std::nullopt;
  std::uint64_t number = 0;
  for (const char byte : key) number = (number << 8) | static_cast<std::uint8_t>(byte);
  return number;
}

std::string encode_place(std::uint64_t size) {
  return place_header(true, size);
}

std::string encode_place(std::string_view content) {
  return place_header(false, content.size()).append(content);
}

Result<ArtifactPlace> decode_place(std::string_view bytes) {
  if (bytes.size() < place_header_bytes ||
      !checksum_holds(bytes.substr(0, place_header_bytes - 4),
                      bytes.substr(place_header_bytes - 4, 4))) {
    return Error{ErrorCode::io, "an artefact's record is damaged"};
  }
  if (bytes[0] != place_version) {
    return Error{ErrorCode::conflict, "an artefact's record is of a newer version"};
  }
  ArtifactPlace place;
  place.in_file = bytes[1] != 0;
  place.size = read_u64(bytes.substr(2));
  place.content = bytes.substr(place_header_bytes);
  if (place.content.size() != (place.in_file ? 0 : place.size)) {
    return Error{ErrorCode::io, "an artefact's record has lost a part of its content"};
  }
  return place;
}

std::string encode_acknowledged(const Acknowledged& value) {
  std::string bytes(acknowledged_magic);
  append_u64(bytes, value.last_event);
  append_u64(bytes, value.result_count);
  append_u64(bytes, value.artifact_count);
  append_checksum(bytes);
  return bytes;
}

std::optional<Acknowledged> decode_acknowledged(std::string_view bytes) {
  constexpr std::size_t covered = 8 + 3 * 8;
  if (bytes.size() != covered + 4 || bytes.substr(0, 8) != acknowledged_magic ||
      !checksum_holds(bytes.substr(0, covered), bytes.substr(covered))) {
    return std::nullopt;
  }
  return Acknowledged{read_u64(bytes.substr(8)), read_u64(bytes.substr(16)),
                      read_u64(bytes.substr(24))};
}

}  // namespace prefgrid
