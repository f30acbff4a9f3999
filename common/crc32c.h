// CRC-32C (Castagnoli), as in RFC 3720: finds every single-bit error and every burst up to 32 bits.
// Not a defence against somebody who means it.
#pragma once

#include <cstdint>
#include <string_view>

namespace prefgrid {

std::uint32_t crc32c(std::string_view data);

}  // namespace prefgrid
