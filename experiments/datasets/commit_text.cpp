#include "experiments/datasets/commit_text.h"

#include <algorithm>
#include <array>

#include "common/text.h"

namespace prefgrid {
namespace {

bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return result;
}

bool local_character(char c) {
  return letter(c) || digit(c) || std::string_view("._%+-").find(c) != std::string_view::npos;
}
bool domain_character(char c) {
  return letter(c) || digit(c) || c == '.' || c == '-';
}

}  // namespace

bool is_trailer(std::string_view line) {
  const std::string text = lower(trim(line));
  if (text.starts_with("(cherry picked from") || text.starts_with("(cherry-picked from"))
    return true;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) return false;
  const std::string_view token = trim(std::string_view(text).substr(0, colon));
  if (token.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string_view::npos)
    return false;
  constexpr std::array<std::string_view, 12> known = {
      "cc",   "change-id", "bugzilla", "fixes",   "references", "reference",
      "link", "closes",    "related",  "part-of", "git-svn-id", "regression-from"};
  return token.ends_with("-by") || std::ranges::find(known, token) != known.end();
}

std::string strip_addresses(std::string_view text) {
  std::string result;
  std::size_t copied = 0;
  for (std::size_t at = text.find('@'); at != std::string_view::npos; at = text.find('@', at + 1)) {
    std::size_t begin = at;
    while (begin > copied && local_character(text[begin - 1])) --begin;
    std::size_t end = at + 1;
    while (end < text.size() && domain_character(text[end])) ++end;
    if (begin == at || end == at + 1) continue;
    if (begin > copied && text[begin - 1] == '<' && end < text.size() && text[end] == '>') {
      --begin;
      ++end;
    }
    result += text.substr(copied, begin - copied);
    copied = end;
  }
  result += text.substr(copied);
  return result;
}

bool is_bot(std::string_view author) {
  const std::string text = lower(author);
  if (text.find("noreply") != std::string::npos || text.find("no-reply") != std::string::npos) {
    return true;
  }
  for (std::size_t at = text.find("bot"); at != std::string::npos; at = text.find("bot", at + 1)) {
    const bool starts = at == 0 || !letter(text[at - 1]);
    const bool ends = at + 3 == text.size() || !letter(text[at + 3]);
    if (starts && ends) return true;  // "[bot]", "ci-bot <bot@...>", not "Talbot"
  }
  return false;
}

bool is_merge_subject(std::string_view subject) {
  return subject.starts_with("Merge ");
}

CommitText commit_text(const std::vector<std::string>& message) {
  CommitText text;
  if (message.empty()) return text;
  text.subject = trim(strip_addresses(message.front()));
  bool gap = false;
  for (std::size_t i = 1; i < message.size(); ++i) {
    if (is_trailer(message[i])) continue;
    const std::string stripped = strip_addresses(message[i]);
    const std::string_view line =
        std::string_view(stripped).substr(0, stripped.find_last_not_of(" \t\v\f") + 1);
    if (line.empty()) {
      gap = !text.body.empty();
      continue;
    }
    if (!text.body.empty()) text.body += gap ? "\n\n" : "\n";
    gap = false;
    text.body += line;
  }
  text.body = trim(text.body);
  return text;
}

}  // namespace prefgrid
