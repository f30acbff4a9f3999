#include "common/crc32c.h"

#include <array>
#include <cstddef>

namespace prefgrid {
namespace {

// tables[k][b]: the remainder of byte b followed by k zero bytes ("slicing by 8", Kounavis 2005).
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) {
      remainder = remainder >> 1 ^ ((remainder & 1) != 0 ? 0x82F63B78u : 0u);
    }
    tables[0][byte] = remainder;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t last = tables[k - 1][byte];
      tables[k][byte] = last >> 8 ^ tables[0][last & 0xFF];
    }
  }
  return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

std::uint32_t crc32c(std::string_view data) {
  std::uint32_t crc = ~0u;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(data[i]));
  };
  while (data.size() >= 8) {
    const std::uint32_t low = crc ^ (byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24);
    crc = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^
          tables[4][low >> 24] ^ tables[3][byte(4)] ^ tables[2][byte(5)] ^ tables[1][byte(6)] ^
          tables[0][byte(7)];
    data.remove_prefix(8);
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    crc = crc >> 8 ^ tables[0][(crc ^ byte(i)) & 0xFF];
  }
  return ~crc;
}

}  // namespace prefgrid
