// Identifiers as distinct types: a JobKey is not an ArtifactDigest, and neither is a string.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace prefgrid {

// 32 bytes of SHA-256; Tag keeps the kinds apart.
template <class Tag>
struct Sha256Id {
  std::array<std::uint8_t, 32> bytes{};

  auto operator<=>(const Sha256Id&) const = default;
  std::string hex() const;        // 64 lower-case digits
  std::string short_hex() const;  // the first 12, for people
  static std::optional<Sha256Id> from_hex(std::string_view hex);
};

using JobKey = Sha256Id<struct JobKeyTag>;
using ArtifactDigest = Sha256Id<struct ArtifactDigestTag>;

enum class WorkerId : std::uint64_t {};      // given by the coordinator at the hello
enum class ExperimentId : std::uint32_t {};  // given by the store at submission
using Attempt = std::uint32_t;               // of one job; only grows; 0 = never leased

}  // namespace prefgrid

template <class Tag>
struct std::hash<prefgrid::Sha256Id<Tag>> {
  std::size_t operator()(const prefgrid::Sha256Id<Tag>& id) const noexcept {
    std::size_t word;
    std::memcpy(&word, id.bytes.data(), sizeof word);
    return word;  // a digest's bytes are uniform already
  }
};
