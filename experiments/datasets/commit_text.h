// From a commit's message to what a model reads and writes: the body without trailers and
// addresses, and the subject. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prefgrid {

struct CommitText {
  std::string subject;  // the first line
  std::string body;     // the rest; lines kept, at most one blank one in a row
};
CommitText commit_text(const std::vector<std::string>& message);

// "Signed-off-by: ...", "Cc: ...", "Bugzilla: ...", "(cherry picked from commit ...)": what tools
// and habits of a project append, which says who and where, not what.
bool is_trailer(std::string_view line);

// Without everything of the form local@domain, with the angle brackets around it.
std::string strip_addresses(std::string_view text);

// An author "Name <mail>" that is a program.
bool is_bot(std::string_view author);

// Git's own "Merge branch 'x'", where the log lacks the Merge: line.
bool is_merge_subject(std::string_view subject);

}  // namespace prefgrid
