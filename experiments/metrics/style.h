// Habits of a subject line that content does not decide: "dix: Use the event." has the component
// prefix "dix: ", an initial capital after it, and a final full stop. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace prefgrid {

enum class Capital { none, lower, upper };  // none: no ASCII letter after the prefix

struct SubjectStyle {
  std::string_view prefix;  // "dix: ", "xfree86/modes: Bug #12: ", or empty; views the subject
  Capital capital = Capital::none;  // of the first letter after the prefix
  bool final_stop = false;          // the last character that is not white space is '.'

  bool operator==(const SubjectStyle&) const = default;
};

// Only the first line that is not blank is looked at. A prefix is one or more components: up to
// two words of letters, digits and path-like punctuation, then ':' and white space.
SubjectStyle subject_style(std::string_view subject);

// Capital, full stop and component prefix all as in the reference.
bool style_match(std::string_view reference, std::string_view generated);

// The same words with one habit turned round; the subject itself where there is nothing to turn.
std::string flip_initial_capital(std::string_view subject);
std::string flip_final_stop(std::string_view subject);

}  // namespace prefgrid
