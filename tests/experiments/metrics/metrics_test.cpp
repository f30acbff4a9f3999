#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/random.h"
#include "experiments/metrics/bow_features.h"
#include "experiments/metrics/rouge.h"
#include "experiments/metrics/style.h"
#include "experiments/metrics/text_metrics.h"
#include "tests/support/seed.h"

namespace prefgrid {
namespace {

// Made with the Python package rouge_score 0.1.2, use_stemmer=False.
TEST_CASE("rouge agrees with the reference implementation on recorded pairs") {
  std::ifstream file(PREFGRID_SOURCE_DIR "/tests/vectors/rouge.jsonl");
  REQUIRE(file);
  std::size_t count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const Rouge scores = rouge(row[0].get<std::string>(), row[1].get<std::string>());
    CAPTURE(line);
    CHECK(std::abs(scores.rouge1 - row[2].get<double>()) < 1e-9);
    CHECK(std::abs(scores.rouge2 - row[3].get<double>()) < 1e-9);
    CHECK(std::abs(scores.rougeL - row[4].get<double>()) < 1e-9);
  }
  CHECK(count >= 1'000);
}

std::size_t naive_distance(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::size_t replace = naive_distance(a.substr(1), b.substr(1)) + (a[0] != b[0] ? 1 : 0);
  return std::min(
      {replace, naive_distance(a.substr(1), b) + 1, naive_distance(a, b.substr(1)) + 1});
}

TEST_CASE("the edit distance agrees with the plain recursion on random texts") {
  RandomStream random(test_seed(), "edit distance");
  const auto text = [&] {
    std::string result(random.below(6), 'a');
    for (char& c : result) c = static_cast<char>('a' + random.below(3));
    return result;
  };
  for (int i = 0; i < 300; ++i) {
    const std::string a = text();
    const std::string b = text();
    CHECK(levenshtein_distance(a, b) == naive_distance(a, b));
  }
}

TEST_CASE("lengths and distances count characters, not bytes") {
  CHECK(levenshtein_distance("na\xC3\xAFve", "naive") == 1);
  CHECK(count_code_points("\xE6\x97\xA5\xE6\x9C\xAC") == 2);
  CHECK(count_code_points("\xFF\xC3") == 2);  // no UTF-8: a byte each
  CHECK(length_ratio("abcd", "ab") == 0.5);
  CHECK(length_ratio("", "ab") == 2);
  CHECK(exact_match("Fix it.\n", " Fix it."));
  CHECK_FALSE(exact_match("Fix it.", "fix it."));
}

TEST_CASE("a subject's style is its component, its first letter after it and its full stop") {
  const SubjectStyle style = subject_style("xfree86/modes: Bug 12: Use the event. \nmore");
  CHECK(style.prefix == "xfree86/modes: Bug 12: ");
  CHECK(style.capital == Capital::upper);
  CHECK(style.final_stop);
  CHECK(subject_style("see http://x.org/a").prefix.empty());
  CHECK(subject_style("fix this long thing: it broke").prefix.empty());
  CHECK(subject_style("").capital == Capital::none);
  CHECK(style_match("dix: Use foo", "dix: Drop the bar"));
  CHECK_FALSE(style_match("dix: Use foo", "dix: use foo"));
  CHECK_FALSE(style_match("dix: Use foo", "dix: Use foo."));
  CHECK_FALSE(style_match("dix: Use foo", "os: Use foo"));
}

TEST_CASE("flipping a habit changes that habit alone, and twice gives the subject back") {
  for (const std::string subject :
       {"dix: Use foo", "dix: use foo.", "Fix", "os: 12 Bytes", "x ."}) {
    CAPTURE(subject);
    const std::string capital = flip_initial_capital(subject);
    CHECK(capital != subject);
    CHECK(flip_initial_capital(capital) == subject);
    CHECK(subject_style(capital).final_stop == subject_style(subject).final_stop);
    const std::string stop = flip_final_stop(subject);
    CHECK(subject_style(stop).final_stop != subject_style(subject).final_stop);
    CHECK(subject_style(stop).capital == subject_style(subject).capital);
  }
  CHECK(flip_final_stop("dix: use foo.") == "dix: use foo");
  CHECK(flip_initial_capital("123") == "123");
  CHECK(flip_final_stop(".") == ".");
}

TEST_CASE("bow features tell a capital and a full stop apart and are merged and bounded") {
  const auto base = bow_features("dix: use the the event", 64);
  CHECK(base != bow_features("dix: Use the the event", 64));
  CHECK(base != bow_features("dix: use the the event.", 64));
  CHECK(base == bow_features("dix: use  the the event", 64));
  for (std::size_t i = 0; i < base.size(); ++i) {
    CHECK(base[i].index < 64);
    if (i > 0) CHECK(base[i - 1].index < base[i].index);
  }
  float sum = 0;
  for (const SparseFeature& feature : base) sum += feature.value;
  CHECK(sum == 6 + 7 + 3 * 4);  // tokens, bigrams with both ends, three style features of weight 4
  const std::vector<float> ones(64, 1);
  CHECK(dot(base, ones) == doctest::Approx(sum));
}

TEST_CASE("bow features keep their indices for ever") {
  // FNV-1a of "a" is af63dc4c8601ec8c (published); mixed by MurmurHash3's finaliser.
  const auto features = bow_features("a", 1u << 31);
  std::uint64_t x = 0xaf63dc4c8601ec8cull;
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
  x ^= x >> 33;
  const SparseFeature expected{static_cast<std::uint32_t>(x % (1u << 31)), 1};
  CHECK(std::ranges::find(features, expected) != features.end());
}

}  // namespace
}  // namespace prefgrid
