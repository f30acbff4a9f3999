#include "common/text.h"
#include "common/base64.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "common/random.h"
#include "tests/support/seed.h"

namespace prefgrid {

TEST_CASE("base64 of the RFC's examples, there and back; what is none is refused") {
  const std::pair<std::string, std::string> examples[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    CHECK(to_base64(bytes) == text);
    CHECK(from_base64(text) == bytes);
  }
  const std::string all = std::string("\0\xff\n", 3) + std::string(70'000, '\x80');
  CHECK(from_base64(to_base64(all)) == all);
  for (const char* wrong : {"Z", "Zg", "Zg=", "Zg= ", "Z===", "Zm9v\n\n\n\n", "Zh==", "Zm9*"}) {
    CHECK(!from_base64(wrong));
  }
}

TEST_CASE("edit_distance counts a swap of neighbours as one edit") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("lore", "loer") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("ca", "abc") == 3);  // the restricted form; the unrestricted one gives 2
}

TEST_CASE("nearest_name finds what was meant and is silent where nothing is near") {
  const std::vector<std::string> known = {"global_bt", "lore", "icl", "zero_shot"};
  CHECK(nearest_name("loer", known) == "lore");
  CHECK(nearest_name("zeroshot", known) == "zero_shot");
  CHECK(nearest_name("Lore", known) == "lore");
  CHECK_FALSE(nearest_name("ppo", known));
  CHECK_FALSE(nearest_name("", known));
  CHECK_FALSE(nearest_name("x", std::vector<std::string>{"y"}));
  CHECK(did_you_mean("loer", known) == ", did you mean \"lore\"?");
  CHECK(did_you_mean("ppo", known).empty());
}

TEST_CASE("valid_utf8 takes the edges of every range and refuses what lies beyond") {
  for (const char* good :
       {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(valid_utf8(good));
  }
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xc3(b"}) {
    CHECK_FALSE(valid_utf8(bad));
  }
  CHECK(valid_utf8(std::string_view("\0", 1)));
}

TEST_CASE("to_valid_utf8 keeps good text and replaces each bad byte") {
  CHECK(to_valid_utf8("m\xc3\xbcller") == "m\xc3\xbcller");
  CHECK(to_valid_utf8("a\xff\xc3z") == "a\xEF\xBF\xBD\xEF\xBF\xBDz");
}

TEST_CASE("cut_text never cuts a character, at any length") {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z\xff";
  for (std::size_t most = 0; most < 20; ++most) {
    const std::string cut = cut_text(text, most);
    CHECK(cut.size() <= most);
    CHECK(valid_utf8(cut));
    CHECK(to_valid_utf8(text).starts_with(cut));
    CHECK(cut.size() + 3 >= std::min(most, to_valid_utf8(text).size()));
  }
}

TEST_CASE("safe_relative_path takes names below a folder and nothing that leads out") {
  for (const char* good : {"a", "a/b.c", "..a", "a../b", "..."}) CHECK(safe_relative_path(good));
  for (const char* bad : {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b"}) {
    CHECK_FALSE(safe_relative_path(bad));
  }
  CHECK_FALSE(safe_relative_path(std::string_view("a\0b", 3)));
}

TEST_CASE("trim and split keep what is between the blanks and the separators") {
  CHECK(trim(" \t a b\r\n") == "a b");
  CHECK(trim(" \n").empty());
  CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(split("", ',') == std::vector<std::string>{""});
  CHECK(split("a,", ',') == std::vector<std::string>{"a", ""});
}

TEST_CASE("format_double is short and reads back to the same bits") {
  CHECK(format_double(0.1) == "0.1");
  CHECK(format_double(1e-5) == "1e-05");
  CHECK(format_double(3) == "3");
  CHECK(format_double(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(format_double(std::nan("")) == "nan");
  RandomStream stream(test_seed(), "format_double");
  for (int i = 0; i < 10'000; ++i) {
    const double value = std::ldexp(stream.normal(), static_cast<int>(stream.below(600)) - 300);
    REQUIRE(std::strtod(format_double(value).c_str(), nullptr) == value);
  }
}

TEST_CASE("quoted shows hostile bytes instead of sending them to the terminal") {
  CHECK(quoted("lore") == "\"lore\"");
  CHECK(quoted("\x1b[2J\n") == "\"\\x1b[2J\\x0a\"");
  CHECK(quoted("\xff\xc3\xa9") == "\"\\xff\xc3\xa9\"");
  CHECK(quoted(std::string(500, 'a'), 3) == "\"aaa...\"");
}

}  // namespace prefgrid
