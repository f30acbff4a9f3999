#include "experiments/datasets/git_log.h"

#include <algorithm>
#include <unordered_set>

#include "common/text.h"

namespace prefgrid {
namespace {

constexpr std::string_view commit_prefix = "commit ";
constexpr std::size_t id_digits = 40;

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The id of a `commit` line, or empty. Decorations stand in parentheses after it.
std::string_view commit_id(std::string_view line) {
  line.remove_prefix(commit_prefix.size());
  const std::string_view id = line.substr(0, id_digits);
  const std::string_view rest = line.substr(id.size());
  const bool plain = trim(rest).empty() || rest.starts_with(" (");
  return id.size() == id_digits && is_hex(id) && plain ? id : std::string_view{};
}

class Parser {
 public:
  Parser(const std::string& file_name, OnBadRow on_bad_row)
      : file_name_(file_name), on_bad_row_(on_bad_row) {}

  Result<GitLog> parse(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++line_;
      PREFGRID_TRY(read(line));
    }
    PREFGRID_TRY(finish_commit());
    if (!any_commit_) return bad_row(file_name_, 0, "holds no commit; is it a git log?");
    return std::move(log_);
  }

 private:
  enum class Part { outside, header, message, rest };

  Result<void> bad(std::uint32_t line, const std::string& reason, const std::string& detail) {
    if (on_bad_row_ == OnBadRow::error) return bad_row(file_name_, line, reason + detail);
    log_.skipped.add(reason);
    return {};
  }

  Result<void> read(std::string_view line) {
    if (line.starts_with(commit_prefix)) return start_commit(line);
    if (part_ == Part::outside) {
      if (any_commit_ || trim(line).empty()) return {};  // of a commit that was skipped
      return bad_row(file_name_, line_,
                     "expected a line \"commit <id>\", found " + quoted(line.substr(0, 60)));
    }
    if (!valid_utf8(line) || line.find('\0') != std::string_view::npos) commit_.is_text = false;
    if (part_ == Part::header) {
      read_header(line);
    } else if (part_ == Part::message) {
      read_message(line);
    }
    return {};
  }

  Result<void> start_commit(std::string_view line) {
    PREFGRID_TRY(finish_commit());
    any_commit_ = true;
    const std::string_view id = commit_id(line);
    if (id.empty()) {
      return bad(line_, "a commit line without a full id", ": " + quoted(line.substr(0, 80)));
    }
    if (!ids_.emplace(id).second) {
      return bad(line_, "a commit that stands twice in a file", ": " + std::string(id));
    }
    commit_ = GitCommit{};
    commit_.id = id;
    commit_.line = line_;
    part_ = Part::header;
    return {};
  }

  void read_header(std::string_view line) {
    if (line.empty()) {
      part_ = Part::message;
    } else if (line.starts_with("Merge:")) {
      commit_.merge = true;
    } else if (line.starts_with("Author:")) {
      commit_.author = trim(line.substr(line.find(':') + 1));
    }
  }

  void read_message(std::string_view line) {
    constexpr std::string_view indent = "    ";
    if (trim(line).empty()) {
      if (!commit_.message.empty()) commit_.message.emplace_back();
    } else if (line.starts_with(indent)) {
      line.remove_prefix(indent.size());
      commit_.message.emplace_back(line.substr(0, line.find_last_not_of(" \t\r\v\f") + 1));
    } else {
      part_ = Part::rest;
    }
  }

  Result<void> finish_commit() {
    if (part_ == Part::outside) return {};
    part_ = Part::outside;
    while (!commit_.message.empty() && commit_.message.back().empty()) commit_.message.pop_back();
    if (commit_.author.empty()) {
      return bad(commit_.line, "a commit without author", ": " + commit_.id);
    }
    log_.commits.push_back(std::move(commit_));
    return {};
  }

  const std::string& file_name_;
  const OnBadRow on_bad_row_;
  GitLog log_;
  GitCommit commit_;
  Part part_ = Part::outside;
  bool any_commit_ = false;
  std::uint32_t line_ = 0;
  std::unordered_set<std::string> ids_;
};

}  // namespace

Result<GitLog> parse_git_log(std::string_view text, const std::string& file_name,
                             OnBadRow on_bad_row) {
  return Parser(file_name, on_bad_row).parse(text);
}

}  // namespace prefgrid
