#include "experiments/metrics/text_metrics.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace prefgrid {
namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// Bytes that the code point starting at `text` takes; 1 for what is not UTF-8.
std::size_t code_point_bytes(std::string_view text) {
  const auto lead = static_cast<std::uint8_t>(text[0]);
  const std::size_t length = lead >= 0xF0 && lead < 0xF5   ? 4
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                                                           : 1;
  if (length > text.size()) return 1;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<std::uint8_t>(text[i]) & 0xC0) != 0x80) return 1;
  }
  return length;
}

// Each code point's bytes as one number: equal numbers, equal code points.
std::vector<std::uint32_t> code_points(std::string_view text) {
  std::vector<std::uint32_t> result;
  while (!text.empty()) {
    const std::size_t length = code_point_bytes(text);
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < length; ++i) {
      value = value << 8 | static_cast<std::uint8_t>(text[i]);
    }
    result.push_back(value);
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace

bool exact_match(std::string_view reference, std::string_view generated) {
  return trim(reference) == trim(generated);
}

std::size_t levenshtein_distance(std::string_view a, std::string_view b) {
  const std::vector<std::uint32_t> rows = code_points(a);
  const std::vector<std::uint32_t> columns = code_points(b);
  std::vector<std::size_t> distance(columns.size() + 1);  // of a's prefix to each prefix of b
  std::iota(distance.begin(), distance.end(), std::size_t{0});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::size_t diagonal = distance[0];
    distance[0] = i + 1;
    for (std::size_t j = 0; j < columns.size(); ++j) {
      const std::size_t replaced = diagonal + (rows[i] != columns[j] ? 1 : 0);
      diagonal = distance[j + 1];
      distance[j + 1] = std::min({replaced, diagonal + 1, distance[j] + 1});
    }
  }
  return distance.back();
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(code_point_bytes(text));
  return count;
}

double length_ratio(std::string_view reference, std::string_view generated) {
  const std::size_t length = std::max<std::size_t>(count_code_points(reference), 1);
  return static_cast<double>(count_code_points(generated)) / static_cast<double>(length);
}

}  // namespace prefgrid
