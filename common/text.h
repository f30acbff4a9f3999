// Small text helpers for messages and tables. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prefgrid {

// Edits (insert, delete, replace, swap of neighbours) that turn one text into the other, in bytes.
// Damerau-Levenshtein in its restricted form (optimal string alignment). O(|a| |b|) time.
std::size_t edit_distance(std::string_view a, std::string_view b);

// What a person probably meant: the known name at the least distance, if that is at most a third
// of the name's length (at least 1). The first of equals.
std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> known);

// `, did you mean "lore"?` or nothing: to be put behind "unknown method "loer"".
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

// Strict: no overlong forms, no surrogates, nothing over U+10FFFF.
bool valid_utf8(std::string_view text);
// Each byte that is part of no well-formed sequence becomes U+FFFD.
std::string to_valid_utf8(std::string_view text);
// The same, and at most max_bytes of it, cut between characters.
std::string cut_text(std::string_view text, std::size_t max_bytes);

// A path that stays below the folder it is put in: not empty, not absolute, no NUL, no part that is
// empty, "." or "..".
bool safe_relative_path(std::string_view path);

std::string_view trim(std::string_view text);  // spaces, tabs, line ends
// "a,,b" -> "a", "", "b"; the empty text gives one empty piece.
std::vector<std::string> split(std::string_view text, char separator);

// The shortest text that reads back to the same double: 0.1, 1e-05, nan, inf.
std::string format_double(double value);

// For messages about hostile text: control and non-UTF-8 bytes become \xNN, over-long text is cut
// with "..." after max_bytes, and double quotes go around it.
std::string quoted(std::string_view text, std::size_t max_bytes = 200);
// Without these, std::quoted (<iomanip>) is found for a std::string, and fits better.
inline std::string quoted(const std::string& text, std::size_t max_bytes = 200) {
  return quoted(std::string_view(text), max_bytes);
}
inline std::string quoted(const char* text, std::size_t max_bytes = 200) {
  return quoted(std::string_view(text), max_bytes);
}
inline std::string quoted(std::string& text, std::size_t max_bytes = 200) {
  return quoted(std::string_view(text), max_bytes);
}

}  // namespace prefgrid
