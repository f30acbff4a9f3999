#include "common/ids.h"

namespace prefgrid {
namespace {

constexpr char digits[] = "0123456789abcdef";

int digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

template <class Tag>
std::string Sha256Id<Tag>::hex() const {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

template <class Tag>
std::string Sha256Id<Tag>::short_hex() const {
  return hex().substr(0, 12);
}

template <class Tag>
std::optional<Sha256Id<Tag>> Sha256Id<Tag>::from_hex(std::string_view hex) {
  Sha256Id id;
  if (hex.size() != 2 * id.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const int high = digit_value(hex[2 * i]);
    const int low = digit_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    id.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return id;
}

template struct Sha256Id<JobKeyTag>;
template struct Sha256Id<ArtifactDigestTag>;

}  // namespace prefgrid
