// Plain comparisons of a generated text with the person's own. Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace prefgrid {

// Equal but for white space at the ends.
bool exact_match(std::string_view reference, std::string_view generated);

// In code points; a byte that is not UTF-8 counts as one. O(n m) time.
std::size_t levenshtein_distance(std::string_view a, std::string_view b);

// Code points generated over code points of the reference; an empty reference counts as one.
double length_ratio(std::string_view reference, std::string_view generated);

std::size_t count_code_points(std::string_view text);

}  // namespace prefgrid
