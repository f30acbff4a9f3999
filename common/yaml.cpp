#include "common/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "common/files.h"
#include "common/limits.h"
#include "common/text.h"

namespace prefgrid {
namespace {

// Text after all aliases are replaced by what they stand for.
constexpr std::size_t expanded_text_bytes = 8 * limits::spec_file_bytes;

// Thrown out of the event handler, through yaml-cpp, to parse_yaml and no further.
struct Problem {
  YamlMark mark;
  std::string text;
};

// Characters, not bytes, before each byte of a text: people count characters.
class Columns {
 public:
  explicit Columns(std::string_view text) : text_(text), characters_(text.size() + 1) {
    line_starts_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool starts = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
      characters_[i + 1] = characters_[i] + (starts ? 1 : 0);
      if (text[i] == '\n') line_starts_.push_back(i + 1);
    }
  }

  YamlMark mark(const YAML::Mark& mark) const {
    if (mark.line < 0 || mark.column < 0) return {};
    return {mark.line + 1, characters_[place(mark)] - characters_[line_start(mark)] + 1};
  }

  // The byte that the mark means, or the end.
  std::size_t place(const YAML::Mark& mark) const {
    return std::min(line_start(mark) + static_cast<std::size_t>(mark.column), text_.size());
  }
  std::string_view text() const { return text_; }

 private:
  std::size_t line_start(const YAML::Mark& mark) const {
    const auto line = static_cast<std::size_t>(mark.line);
    return line < line_starts_.size() ? line_starts_[line] : text_.size();
  }

  std::string_view text_;
  std::vector<int> characters_;
  std::vector<std::size_t> line_starts_;
};

// Whether the quoted text that starts at `place` (perhaps behind an anchor) is never closed:
// yaml-cpp then takes all that follows into it, without a word if the file ends with a line end.
bool never_closed(std::string_view text, std::size_t place) {
  if (place < text.size() && (text[place] == '&' || text[place] == '!')) {
    place = text.find_first_not_of(" \r\n", text.find_first_of(" \r\n", place));
  }
  if (place >= text.size() || (text[place] != '\'' && text[place] != '"')) return false;
  const char quote = text[place];
  for (std::size_t i = place + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 >= text.size() || text[i + 1] != quote) return false;
      ++i;  // two of them are one quote inside single quotes
    }
  }
  return true;
}

struct Extent {
  std::size_t nodes = 1;
  std::size_t depth = 1;
  std::size_t text_bytes = 0;
};

Extent extent_of(const YamlNode& node) {
  Extent extent;
  const auto add = [&](const YamlNode& child) {
    const Extent part = extent_of(child);
    extent.nodes += part.nodes;
    extent.depth = std::max(extent.depth, part.depth + 1);
    extent.text_bytes += part.text_bytes;
  };
  if (const auto* scalar = std::get_if<YamlScalar>(&node.content)) {
    extent.text_bytes = scalar->text.size();
  } else if (const auto* list = std::get_if<YamlList>(&node.content)) {
    for (const YamlNode& child : *list) add(child);
  } else if (const auto* map = std::get_if<YamlMap>(&node.content)) {
    for (const YamlEntry& entry : *map) {
      extent.text_bytes += entry.key.size();
      add(entry.value);
    }
  }
  return extent;
}

// Builds our tree from yaml-cpp's events, which unlike its nodes are not shared, not lazy and come
// with a position each. Everything that an alias stands for is copied and counted.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const Columns& columns) : columns_(columns) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const YamlMark place = columns_.mark(mark);
    refuse_as_key(place, "nothing");
    finish({place, YamlNull{}}, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const YamlMark place = columns_.mark(mark);
    refuse_as_key(place, "an alias");
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Problem{place, "this alias contains itself"};
    YamlNode copy = found->second;
    copy.mark = place;
    count(place, extent_of(copy));
    add(std::move(copy));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const YamlMark place = columns_.mark(mark);
    refuse_tag(place, tag);
    const bool quoted = tag == "!";
    if (quoted && never_closed(columns_.text(), columns_.place(mark))) {
      throw Problem{place, "this quotation mark is never closed"};
    }
    if (wants_key()) return take_key(place, value, quoted);
    finish({place, YamlScalar{value, quoted}}, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(columns_.mark(mark), tag, anchor, YamlList{}, "a list");
  }
  void OnSequenceEnd() override { end(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(columns_.mark(mark), tag, anchor, YamlMap{}, "a map");
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::set<std::string> keys;        // of a map
    std::optional<YamlEntry> waiting;  // of a map: a key whose value comes next
  };

  bool wants_key() const {
    return !open_.empty() && std::holds_alternative<YamlMap>(open_.back().node.content) &&
           !open_.back().waiting;
  }

  void refuse_as_key(const YamlMark& mark, const std::string& what) const {
    if (wants_key()) throw Problem{mark, "a key is needed here, not " + what};
  }

  // yaml-cpp says "?" or nothing for what has no tag, and "!" for quoted text.
  static void refuse_tag(const YamlMark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw Problem{mark, "tags such as " + quoted(tag, 60) + " are not supported"};
  }

  void take_key(const YamlMark& mark, const std::string& key, bool is_quoted) {
    if (key == "<<" && !is_quoted) {
      throw Problem{mark, "merge keys (<<) are not supported: write the fields out"};
    }
    if (!open_.back().keys.insert(key).second) {
      throw Problem{mark, "the key " + quoted(key, 60) + " is there twice"};
    }
    count(mark, {0, 0, key.size()});
    open_.back().waiting = YamlEntry{key, mark, {}};
  }

  void start(const YamlMark& mark, const std::string& tag, YAML::anchor_t anchor,
             std::variant<YamlNull, YamlScalar, YamlList, YamlMap> content,
             const std::string& what) {
    refuse_as_key(mark, what);
    refuse_tag(mark, tag);
    count(mark, {1, 1, 0});
    open_.push_back({{mark, std::move(content)}, anchor, {}, {}});
  }

  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    remember(done.node, done.anchor);
    add(std::move(done.node));
  }

  void finish(YamlNode node, YAML::anchor_t anchor) {
    count(node.mark, extent_of(node));
    remember(node, anchor);
    add(std::move(node));
  }

  void remember(const YamlNode& node, YAML::anchor_t anchor) {
    if (anchor == YAML::NullAnchor) return;
    count(node.mark, {extent_of(node).nodes, 0, extent_of(node).text_bytes});
    anchors_[anchor] = node;
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (auto* list = std::get_if<YamlList>(&open_.back().node.content)) {
      list->push_back(std::move(node));
    } else {
      Open& map = open_.back();
      map.waiting->value = std::move(node);
      std::get<YamlMap>(map.node.content).push_back(*std::move(map.waiting));
      map.waiting.reset();
    }
  }

  // Before anything is kept: what comes in stays within the limits.
  void count(const YamlMark& mark, const Extent& extent) {
    nodes_ += extent.nodes;
    text_bytes_ += extent.text_bytes;
    if (open_.size() + extent.depth > limits::yaml_depth) {
      throw Problem{mark, "nested deeper than " + std::to_string(limits::yaml_depth) + " levels"};
    }
    if (nodes_ > limits::yaml_nodes) {
      throw Problem{
          mark, "more than " + std::to_string(limits::yaml_nodes) + " values, aliases replaced"};
    }
    if (text_bytes_ > expanded_text_bytes) {
      throw Problem{mark, "more than " + std::to_string(expanded_text_bytes) +
                              " bytes of text, aliases replaced"};
    }
  }

  const Columns& columns_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  YamlNode root_;
  std::size_t nodes_ = 0;
  std::size_t text_bytes_ = 0;
};

// Whatever it hears of is too much.
class NothingMore : public YAML::EventHandler {
 public:
  explicit NothingMore(const Columns& columns) : columns_(columns) {}
  void OnDocumentStart(const YAML::Mark& mark) override {
    throw Problem{columns_.mark(mark),
                  "a second document, or something behind the end of the first"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  const Columns& columns_;
};

// What yaml-cpp would let pass, or choke on.
std::optional<Problem> find_bad_byte(std::string_view text) {
  YamlMark mark;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\n') {
      mark = {mark.line + 1, 1};
      continue;
    }
    if (byte == '\t') {
      return Problem{mark, "a tab: indent with spaces, or write \\t inside double quotes"};
    }
    const bool line_end = byte == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if ((byte < 0x20 && !line_end) || byte == 0x7F) {
      return Problem{mark, "the byte " + quoted(text.substr(i, 1)) + ": is this a text file?"};
    }
    if ((byte & 0xC0) != 0x80) ++mark.column;
  }
  return std::nullopt;
}

Error error_at(const std::string& name, const Problem& problem) {
  return invalid_input(name + ":" + std::to_string(problem.mark.line) + ":" +
                       std::to_string(problem.mark.column) + ": " + problem.text);
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  return text;
}

// [+-]? (digits [. digits?] | . digits) ([eE] [+-]? digits)?
bool is_real(std::string_view text) {
  text = without_sign(text);
  const std::size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    if (!all_digits(without_sign(text.substr(exponent + 1)))) return false;
    text = text.substr(0, exponent);
  }
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return all_digits(text);
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = text.substr(point + 1);
  if (whole.empty()) return all_digits(part);
  return all_digits(whole) && (part.empty() || all_digits(part));
}

// The text of an unquoted scalar; `wanted` says what the field needs.
Result<std::string> plain(const YamlNode& node, const std::string& wanted) {
  if (const auto* scalar = std::get_if<YamlScalar>(&node.content)) {
    if (!scalar->quoted) return scalar->text;
    return invalid_input(quoted(scalar->text, 60) + " is quoted text, " + wanted +
                         " without quotes is needed");
  }
  const char* found = std::holds_alternative<YamlNull>(node.content)   ? "nothing"
                      : std::holds_alternative<YamlList>(node.content) ? "a list"
                                                                       : "a map";
  return invalid_input(std::string(found) + " where " + wanted + " is needed");
}

// from_chars takes a minus, but no plus.
template <class Number>
Result<Number> parse_number(std::string_view text, const char* limit) {
  const std::string_view digits = text.front() == '+' ? text.substr(1) : text;
  Number number{};
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (problem != std::errc() || end != digits.data() + digits.size()) {
    return invalid_input(quoted(text, 60) + " is out of the range of " + limit);
  }
  return number;
}

}  // namespace

Result<YamlNode> parse_yaml(std::string_view text, const std::string& name) {
  if (text.size() > limits::spec_file_bytes) {
    return invalid_input(name + " is larger than the limit of " +
                         std::to_string(limits::spec_file_bytes) + " bytes");
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  if (const auto problem = find_bad_byte(text)) return error_at(name, *problem);
  if (!valid_utf8(text)) return invalid_input(name + " is not UTF-8 text: convert it");
  const Columns columns(text);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(columns);
    if (!parser.HandleNextDocument(builder)) return error_at(name, {{}, "the file is empty"});
    YamlNode root = builder.take();
    NothingMore nothing(columns);
    parser.HandleNextDocument(nothing);
    if (std::holds_alternative<YamlNull>(root.content)) {
      return error_at(name, {{}, "the document is empty"});
    }
    return root;
  } catch (const Problem& problem) {
    return error_at(name, problem);
  } catch (const YAML::Exception& problem) {
    return error_at(name, {columns.mark(problem.mark), "not valid YAML: " + problem.msg});
  } catch (const std::exception& problem) {
    return Error{ErrorCode::internal, name + " cannot be parsed: " + problem.what()};
  }
}

Result<YamlNode> load_yaml(const std::filesystem::path& file) {
  PREFGRID_ASSIGN(const std::string text, read_file(file, limits::spec_file_bytes));
  return parse_yaml(text, file.string());
}

Result<bool> yaml_boolean(const YamlNode& node) {
  PREFGRID_ASSIGN(const std::string text, plain(node, "true or false"));
  if (text == "true") return true;
  if (text == "false") return false;
  return invalid_input(quoted(text, 60) + " is neither true nor false");
}

Result<std::int64_t> yaml_integer(const YamlNode& node) {
  PREFGRID_ASSIGN(const std::string text, plain(node, "a whole number"));
  if (!all_digits(without_sign(text))) {
    return invalid_input(quoted(text, 60) + " is not a whole number");
  }
  return parse_number<std::int64_t>(text, "64-bit numbers");
}

Result<double> yaml_real(const YamlNode& node) {
  PREFGRID_ASSIGN(const std::string text, plain(node, "a number"));
  if (!is_real(text)) return invalid_input(quoted(text, 60) + " is not a number");
  return parse_number<double>(text, "double precision");
}

Result<std::string> yaml_text(const YamlNode& node) {
  if (const auto* scalar = std::get_if<YamlScalar>(&node.content)) return scalar->text;
  return plain(node, "text");
}

}  // namespace prefgrid
