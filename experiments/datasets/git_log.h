// Reads dumps of `git log`, as Debian ships them for changelogs. Pure; any thread.
//   commit <40 hex digits>[ (decoration)]
//   Merge: ...            of a merge
//   Author: Name <mail>
//   Date:   ...
//
//       subject             the message, four blanks deep
//
//    file | 2 +-            a diffstat, one blank deep, or notes: ignored
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/datasets/records.h"

namespace prefgrid {

struct GitCommit {
  std::string id;      // 40 hex digits
  std::string author;  // "Name <mail>"; may be empty
  bool merge = false;
  bool is_text = true;               // UTF-8 without NUL, all of it
  std::vector<std::string> message;  // lines without indentation; no blank one at either end
  std::uint32_t line = 0;            // of its `commit` line
};

struct GitLog {
  std::vector<GitCommit> commits;  // in the order of the file: the newest first
  SkipCounter skipped;
};

// Bad rows: a `commit` line without a full id, a commit without author, an id that stands twice.
// Always an error: text before the first commit, no commit at all.
Result<GitLog> parse_git_log(std::string_view text, const std::string& file_name,
                             OnBadRow on_bad_row);

}  // namespace prefgrid
