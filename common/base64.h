// Bytes as text, for answers that carry text alone (RFC 4648, section 4, with padding).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace prefgrid {

std::string to_base64(std::string_view bytes);
// nullopt: not the base64 of anything.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace prefgrid
