// SHA-256 over OpenSSL. Any thread; a Sha256 belongs to one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "common/ids.h"
#include "common/result.h"

namespace prefgrid {

using Sha256Bytes = std::array<std::uint8_t, 32>;

// Incremental: update any number of times, then finish once.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void update(std::string_view data);
  Sha256Bytes finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Bytes sha256(std::string_view data);

ArtifactDigest digest_of(std::string_view content);
// Streams the file; refuses anything but a regular one.
Result<ArtifactDigest> digest_of_file(const std::filesystem::path& file);

}  // namespace prefgrid
