// Counter-based random numbers (Philox 4x32-10): a draw is a pure function of (key, counter), so it
// does not depend on how many were drawn before, by whom, or in which order.
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace prefgrid {

// Inline: bootstraps and samplers call it millions of times.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// 64 bits of SHA-256 of the text: the same on every machine and for ever.
std::uint64_t stable_hash(std::string_view text);

// A stream of draws named by (seed, purpose): `RandomStream(seed, "dropout/layer3")`.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view purpose);

  std::uint64_t bits();                      // 64 uniform bits
  double uniform();                          // [0, 1), 53 bits
  double normal();                           // mean 0, deviation 1 (Box-Muller, no rejection)
  std::uint64_t below(std::uint64_t bound);  // uniform in [0, bound), bound > 0, unbiased

  // Where the stream stands: stored in checkpoints.
  std::uint64_t position() const { return position_; }
  void seek(std::uint64_t position) { position_ = position; }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t purpose_;
  std::uint64_t position_ = 0;  // blocks used
};

}  // namespace prefgrid
