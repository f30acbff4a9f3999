#include "common/yaml.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "common/limits.h"
#include "common/random.h"
#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {
namespace {

YamlNode parsed(std::string_view text) {
  Result<YamlNode> node = parse_yaml(text, "spec.yaml");
  if (!node) FAIL(std::string(text) << "\n" << node.error().message);
  return *std::move(node);
}

// The error of a text that must be refused.
std::string refusal(std::string_view text) {
  const Result<YamlNode> node = parse_yaml(text, "spec.yaml");
  if (node) return "accepted";
  CHECK(node.error().code == ErrorCode::invalid_input);
  return node.error().message;
}

const YamlNode& field(const YamlNode& node, const std::string& key) {
  for (const YamlEntry& entry : std::get<YamlMap>(node.content)) {
    if (entry.key == key) return entry.value;
  }
  FAIL("no field " << key);
  return node;
}

YamlNode plain(const std::string& text) {
  return {{}, YamlScalar{text, false}};
}

std::string show(const YamlNode& node) {
  if (const auto* scalar = std::get_if<YamlScalar>(&node.content)) {
    return scalar->quoted ? "'" + scalar->text + "'" : scalar->text;
  }
  std::string out;
  if (const auto* list = std::get_if<YamlList>(&node.content)) {
    for (const YamlNode& item : *list) out += show(item) + ",";
    return "[" + out + "]";
  }
  if (const auto* map = std::get_if<YamlMap>(&node.content)) {
    for (const YamlEntry& entry : *map) out += entry.key + ":" + show(entry.value) + ",";
    return "{" + out + "}";
  }
  return "~";
}

bool starts(const std::string& text, const std::string& beginning) {
  if (text.starts_with(beginning)) return true;
  MESSAGE(text);
  return false;
}

}  // namespace

TEST_CASE("a spec reads as its tree, in the order of the file, with what was quoted") {
  CHECK(show(parsed("b: [1, '2', \"x\"]\na:\n  - no\n  - k: 12:30\n  -\nc: |\n  two\n  lines\n")) ==
        "{b:[1,'2','x',],a:[no,{k:12:30,},~,],c:'two\nlines\n',}");
}

TEST_CASE("no, 0123, 12:30, 1_000 and on stay what the person wrote") {
  const YamlNode list = parsed("[no, 0123, 12:30, 1_000, on, 3.0, 1e5, '010']");
  std::string texts;
  for (const YamlNode& item : std::get<YamlList>(list.content)) {
    texts += yaml_text(item).value() + " ";
  }
  CHECK(texts == "no 0123 12:30 1_000 on 3.0 1e5 010 ");
}

TEST_CASE("null and nothing are YamlNull, quoted they are text") {
  CHECK(show(parsed("a:\nb: ~\nc: null\nd: 'null'\ne: ''\n")) == "{a:~,b:~,c:~,d:'null',e:'',}");
}

TEST_CASE("every value and key knows its line and column, counted in characters") {
  const YamlNode node = parsed("é: 1\nmodels:\n  - {name: ü, n: 3}\n");
  CHECK(field(node, "é").mark.column == 4);
  const YamlNode& item = std::get<YamlList>(field(node, "models").content)[0];
  CHECK(item.mark.line == 3);
  CHECK(item.mark.column == 5);
  const YamlEntry& n = std::get<YamlMap>(item.content)[1];
  CHECK(n.key_mark.column == 15);
  CHECK(n.value.mark.column == 18);
  CHECK(field(parsed("\xEF\xBB\xBF"
                     "a: b\n"),
              "a")
            .mark.column == 4);
  CHECK(field(parsed("x: y\r\na: b\r\n"), "a").mark.line == 2);
}

TEST_CASE("an alias stands for a copy of what its anchor named") {
  CHECK(show(parsed("a: &x [1, {k: v}]\nb: *x\nc: *x\n")) ==
        "{a:[1,{k:v,},],b:[1,{k:v,},],c:[1,{k:v,},],}");
}

TEST_CASE("what yaml-cpp lets pass in silence is refused, with its place") {
  CHECK(starts(refusal("a: 1\nb: 2\na: 3\n"), "spec.yaml:3:1: the key \"a\" is there twice"));
  CHECK(starts(refusal("a: 1\n---\nb: 2\n"), "spec.yaml:2:1: a second document"));
  CHECK(starts(refusal("a: 1\n...\ngarbage\n"), "spec.yaml:3:1: a second document"));
  CHECK(starts(refusal("a: &x {b: *x}\n"), "spec.yaml:1:11: this alias contains itself"));
  CHECK(starts(refusal("&x [*x]"), "spec.yaml:1:5: this alias contains itself"));
  CHECK(starts(refusal("a: {<<: {b: 1}}\n"), "spec.yaml:1:5: merge keys"));
  CHECK(show(parsed("'<<': 1")) == "{<<:1,}");
  CHECK(starts(refusal("a:\n\tb: 1\n"), "spec.yaml:2:1: a tab"));
  CHECK(starts(refusal("a: 1\t# b\n"), "spec.yaml:1:5: a tab"));
  CHECK(starts(refusal("a: !!int 3\n"), "spec.yaml:1:4: tags such as"));
  CHECK(starts(refusal("a: !mine {b: 1}\n"), "spec.yaml:1:4: tags such as"));
  CHECK(starts(refusal("? [a]\n: 1\n"), "spec.yaml:1:3: a key is needed here, not a list"));
  CHECK(starts(refusal("~: 1\n"), "spec.yaml:1:1: a key is needed here, not nothing"));
  CHECK(starts(refusal("a: &x b\n*x : 1\n"), "spec.yaml:2:1: a key is needed here, not an alias"));
}

TEST_CASE("what is no YAML is refused with its place") {
  CHECK(starts(refusal("a: [1, 2\nb: 3\n"), "spec.yaml:"));
  CHECK(starts(refusal("a: *nowhere\n"), "spec.yaml:1:4: not valid YAML"));
  // yaml-cpp takes the rest of the file into the text.
  CHECK(starts(refusal("a: 'unclosed\nb: 2\n"), "spec.yaml:1:4: this quotation mark is never"));
  CHECK(starts(refusal("a: \"unclosed\\\"\n"), "spec.yaml:1:4: this quotation mark is never"));
  CHECK(starts(refusal("a: &x 'unclosed''\n"), "spec.yaml:1:4: this quotation mark is never"));
  CHECK(starts(refusal("[a, 'b\n"), "spec.yaml:"));
  CHECK(starts(refusal("a: 1\n'b: 2\n"), "spec.yaml:"));
  CHECK(show(parsed("a: &x 'it''s'\n'b ''': \"\\\"\\\\\"\nc: &y\n  \"d\"\n")) ==
        "{a:'it's',b ':'\"\\',c:'d',}");
  CHECK(starts(refusal("a: b: c\n"), "spec.yaml:1:"));
  CHECK(starts(refusal("\"abc\" def"), "spec.yaml:1:"));
}

TEST_CASE("nothing, blanks, comments and a null document are empty files") {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "null", "~"}) {
    CAPTURE(text);
    CHECK(refusal(text).find("empty") != std::string::npos);
  }
}

TEST_CASE("binary files and other encodings are refused") {
  CHECK(starts(refusal(std::string("a: 1\n\0b", 7)), "spec.yaml:2:1: the byte \"\\x00\""));
  CHECK(starts(refusal("a: \x1b[2J"), "spec.yaml:1:4: the byte \"\\x1b\""));
  CHECK(refusal("a: \xff\xfe").find("UTF-8") != std::string::npos);
  CHECK(refusal("a: caf\xe9").find("UTF-8") != std::string::npos);
  CHECK(starts(refusal(std::string("\xff\xfe"
                                   "a\0:\0",
                                   6)),
               "spec.yaml:1:"));
  CHECK(starts(refusal("a: 1\rb: 2\r"), "spec.yaml:1:5: the byte"));
}

TEST_CASE("files over the limits are refused before they cost anything") {
  CHECK(refusal(std::string(limits::spec_file_bytes + 1, 'a')).find("larger than") !=
        std::string::npos);
  std::string laughs = "l0: &l0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*l" + std::to_string(i - 1);
    laughs += "l" + std::to_string(i) + ": &l" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) laughs += last + (k < 8 ? ", " : "]\n");
  }
  CHECK(refusal(laughs).find("more than 100000 values") != std::string::npos);
  std::string big = "a: &x " + std::string(500'000, 'x') + "\nb: [";
  for (int i = 0; i < 100; ++i) big += "*x, ";
  CHECK(refusal(big + "1]\n").find("bytes of text, aliases replaced") != std::string::npos);
  std::string many = "[";
  for (std::size_t i = 0; i <= limits::yaml_nodes; ++i) many += "1,";
  CHECK(refusal(many + "1]").find("more than 100000 values") != std::string::npos);
}

TEST_CASE("nesting is allowed up to the limit, in any notation, and not beyond") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth - 1, '[') + "x" + std::string(depth - 1, ']');
  };
  CHECK(parse_yaml(nested(limits::yaml_depth), "f").ok());
  CHECK(refusal(nested(limits::yaml_depth + 1)).find("nested deeper") != std::string::npos);
  CHECK_FALSE(parse_yaml(std::string(900'000, '['), "f").ok());
  std::string dashes;
  for (int i = 0; i < 300'000; ++i) dashes += "- ";
  CHECK(refusal(dashes).find("nested deeper") != std::string::npos);
  std::string questions;
  for (int i = 0; i < 300'000; ++i) questions += "? ";
  CHECK_FALSE(parse_yaml(questions, "f").ok());
  CHECK(
      refusal("a: &x " + nested(20) + "\nb: " + std::string(15, '[') + "*x" + std::string(15, ']'))
          .find("nested deeper") != std::string::npos);
}

TEST_CASE("load_yaml tells missing files, folders and bad content apart") {
  const TempDir dir;
  CHECK(load_yaml(dir.path() / "none.yaml").error().code == ErrorCode::not_found);
  CHECK(load_yaml(dir.path()).error().message.find("is a folder") != std::string::npos);
  const auto file = dir.write("spec.yaml", "a: 1\na: 2\n");
  CHECK(load_yaml(file).error().message.starts_with(file.string() + ":2:1: "));
  CHECK(show(load_yaml(dir.write("good.yaml", "a: 1")).value()) == "{a:1,}");
  CHECK_FALSE(load_yaml(dir.write("big.yaml", std::string(limits::spec_file_bytes + 1, '#'))).ok());
}

TEST_CASE("whole numbers are digits with a sign, in 64 bits, and nothing else") {
  CHECK(yaml_integer(plain("010")).value() == 10);
  CHECK(yaml_integer(plain("+7")).value() == 7);
  CHECK(yaml_integer(plain("-9223372036854775808")).value() == INT64_MIN);
  CHECK(yaml_integer(plain("9223372036854775807")).value() == INT64_MAX);
  for (const char* bad : {"", "+", "-", "1.0", "1e5", "0x10", "1_000", " 1", "1 ", "--1", "+-1",
                          "9223372036854775808", "no", "12:30"}) {
    CAPTURE(bad);
    CHECK_FALSE(yaml_integer(plain(bad)).ok());
  }
  CHECK(yaml_integer({{}, YamlScalar{"1", true}}).error().message.find("quoted text") !=
        std::string::npos);
  CHECK(yaml_integer({{}, YamlList{}}).error().message == "a list where a whole number is needed");
  CHECK(yaml_integer({{}, YamlNull{}}).error().message == "nothing where a whole number is needed");
}

TEST_CASE("reals are read by value, whatever their spelling, and are finite") {
  for (const char* same : {"1e-5", "0.00001", "1.0e-05", "+1E-5", "00.00001", ".00001", "1.e-5"}) {
    CAPTURE(same);
    CHECK(yaml_real(plain(same)).value() == 1e-5);
  }
  CHECK(yaml_real(plain("3")).value() == 3);
  CHECK(yaml_real(plain("-0.5")).value() == -0.5);
  for (const char* bad : {"", ".", "e5", "1e", "1e+", ".e5", "nan", ".nan", "inf", ".inf", "-.inf",
                          "1e999", "0x1p3", "1,5", "1.2.3", "1d5", "infinity"}) {
    CAPTURE(bad);
    CHECK_FALSE(yaml_real(plain(bad)).ok());
  }
}

TEST_CASE("booleans are true and false, unquoted; text is any scalar") {
  CHECK(yaml_boolean(plain("true")).value());
  CHECK_FALSE(yaml_boolean(plain("false")).value());
  for (const char* bad : {"yes", "no", "on", "True", "1", ""}) {
    CHECK_FALSE(yaml_boolean(plain(bad)).ok());
  }
  CHECK_FALSE(yaml_boolean({{}, YamlScalar{"true", true}}).ok());
  CHECK(yaml_text({{}, YamlScalar{"x", true}}).value() == "x");
  CHECK(yaml_text({{}, YamlMap{}}).error().message == "a map where text is needed");
  CHECK(yaml_text({{}, YamlNull{}}).error().message == "nothing where text is needed");
}

TEST_CASE("no text of YAML's own characters makes the parser crash or hang") {
  RandomStream random(test_seed(), "yaml");
  const std::string alphabet = "aab:: --??[]{},&*!|>'\"%@`#~\n\n  \\x1.\xc3\xa9<";
  const std::string good =
      "a: &x [1, {k: 'v', \"w\\n\": [no, ~]}]\nb: *x\nc: |\n  two\n  lines\nd: >-\n  x\n"
      "? e\n: f\n--- \n";
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = i % 2 == 0 ? good : std::string();
    const std::size_t edits = 1 + random.below(i % 2 == 0 ? 4 : 40);
    for (std::size_t edit = 0; edit < edits; ++edit) {
      const std::size_t place = random.below(text.size() + 1);
      if (random.below(3) == 0) {
        text.erase(place, random.below(5));
      } else {
        text.insert(place, 1, alphabet[random.below(alphabet.size())]);
      }
    }
    accepted += parse_yaml(text, "f").ok() ? 1 : 0;
  }
  CHECK(accepted > 100);  // else the texts are too wild to reach anything
}

}  // namespace prefgrid
