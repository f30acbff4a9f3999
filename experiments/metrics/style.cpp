#include "experiments/metrics/style.h"

namespace prefgrid {
namespace {

bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}
bool upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool letter(char c) {
  return upper(c) || lower(c);
}

bool component_character(char c) {
  return letter(c) || (c >= '0' && c <= '9') ||
         std::string_view("_./*{}[],<>()+-#@").find(c) != std::string_view::npos;
}

std::string_view first_line(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n\v\f");
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find('\n', start) - start);
}

// Where the component that starts at `begin` ends (after its colon and white space), else `begin`.
std::size_t end_of_component(std::string_view line, std::size_t begin) {
  std::size_t at = begin;
  for (int word = 0; word < 2; ++word) {
    const std::size_t word_begin = at;
    while (at < line.size() && component_character(line[at])) ++at;
    if (at == word_begin || at == line.size()) return begin;
    if (line[at] == ':') break;
    if (line[at] != ' ') return begin;
    ++at;
  }
  if (at + 1 >= line.size() || line[at] != ':' || !blank(line[at + 1])) return begin;
  ++at;
  while (at < line.size() && blank(line[at])) ++at;
  return at;
}

std::size_t prefix_length(std::string_view line) {
  std::size_t end = 0;
  for (std::size_t next = end_of_component(line, end); next != end;
       next = end_of_component(line, end)) {
    end = next;
  }
  return end;
}

// The first letter after the prefix, or npos.
std::size_t initial_letter(std::string_view line, std::size_t prefix) {
  std::size_t at = prefix;
  while (at < line.size() && !letter(line[at])) ++at;
  return at < line.size() ? at : std::string_view::npos;
}

}  // namespace

SubjectStyle subject_style(std::string_view subject) {
  const std::string_view line = first_line(subject);
  SubjectStyle style;
  style.prefix = line.substr(0, prefix_length(line));
  const std::size_t initial = initial_letter(line, style.prefix.size());
  if (initial != std::string_view::npos) {
    style.capital = upper(line[initial]) ? Capital::upper : Capital::lower;
  }
  const std::size_t last = line.find_last_not_of(" \t\r\v\f");
  style.final_stop = last != std::string_view::npos && line[last] == '.';
  return style;
}

bool style_match(std::string_view reference, std::string_view generated) {
  return subject_style(reference) == subject_style(generated);
}

std::string flip_initial_capital(std::string_view subject) {
  std::string flipped(subject);
  const std::string_view line = first_line(subject);
  const std::size_t initial = initial_letter(line, prefix_length(line));
  if (initial == std::string_view::npos) return flipped;
  char& c = flipped[static_cast<std::size_t>(line.data() - subject.data()) + initial];
  c = static_cast<char>(c ^ 0x20);  // ASCII: the bit between the cases
  return flipped;
}

std::string flip_final_stop(std::string_view subject) {
  const std::string_view line = first_line(subject);
  const std::size_t last = line.find_last_not_of(" \t\r\v\f");
  std::string flipped(subject);
  if (last == std::string_view::npos) return flipped;
  const std::size_t at = static_cast<std::size_t>(line.data() - subject.data()) + last;
  if (line[last] != '.') return flipped.insert(at + 1, 1, '.');
  // "foo ." loses the blank too; a lone "." has no words left to keep.
  std::size_t keep = at;
  while (keep > 0 && blank(flipped[keep - 1])) --keep;
  if (keep == 0) return flipped;
  return flipped.erase(keep, at + 1 - keep);
}

}  // namespace prefgrid
