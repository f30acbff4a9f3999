#include "common/random.h"

#include <cmath>
#include <numbers>

#include "common/check.h"
#include "common/sha256.h"

namespace prefgrid {
namespace {

constexpr std::uint32_t low_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
constexpr std::uint32_t high_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}
constexpr std::uint64_t join(std::uint32_t low, std::uint32_t high) {
  return std::uint64_t{high} << 32 | low;
}
constexpr double unit = 0x1p-53;  // uniform() and normal() use the top 53 bits

}  // namespace

std::uint64_t stable_hash(std::string_view text) {
  const Sha256Bytes bytes = sha256(text);
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < 8; ++i) hash |= std::uint64_t{bytes[i]} << (8 * i);
  return hash;
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose)
    : key_{low_word(seed), high_word(seed)}, purpose_(stable_hash(purpose)) {}

// One block a draw: wasteful by half, but position() alone says where the stream stands.
std::uint64_t RandomStream::bits() {
  const auto block = philox(
      {low_word(position_), high_word(position_), low_word(purpose_), high_word(purpose_)}, key_);
  ++position_;
  return join(block[0], block[1]);
}

double RandomStream::uniform() {
  return static_cast<double>(bits() >> 11) * unit;
}

double RandomStream::normal() {
  const auto block = philox(
      {low_word(position_), high_word(position_), low_word(purpose_), high_word(purpose_)}, key_);
  ++position_;
  const std::uint64_t first = join(block[0], block[1]) >> 11;
  const std::uint64_t second = join(block[2], block[3]) >> 11;
  const double radius = std::sqrt(-2 * std::log(static_cast<double>(first + 1) * unit));
  return radius * std::cos(2 * std::numbers::pi * static_cast<double>(second) * unit);
}

// Lemire, "Fast random integer generation in an interval", 2019: multiply, reject the few values
// that would make some results more likely.
std::uint64_t RandomStream::below(std::uint64_t bound) {
  PREFGRID_CHECK(bound > 0, "below(0)");
  const std::uint64_t reject_under = (0 - bound) % bound;
  for (;;) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(bits()) * bound;
    if (static_cast<std::uint64_t>(product) >= reject_under) {
      return static_cast<std::uint64_t>(product >> 64);
    }
  }
}

}  // namespace prefgrid
