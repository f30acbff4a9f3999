#include "experiments/methods/text_reward.h"

#include <doctest/doctest.h>

#include "experiments/methods/prompts.h"
#include "experiments/metrics/bow_features.h"
#include "tests/experiments/methods/support.h"

namespace prefgrid {
namespace {

double direct(const LinearHead& head, std::string_view text) {
  double sum = 0;
  for (const SparseFeature& feature :
       bow_features(text, static_cast<std::uint32_t>(head.direction.size()))) {
    sum += static_cast<double>(feature.value) * head.direction[feature.index];
  }
  return sum;
}

LinearHead some_head() {
  LinearHead head;
  for (int i = 0; i < 64; ++i) head.direction.push_back(static_cast<float>((i * 37) % 11) - 5);
  return head;
}

TEST_CASE("candidates' bags are those of the decoded prefix with the candidate behind it") {
  const Tokenizer tokenizer = small_tokenizer();
  const auto response = response_tokens(tokenizer, "Fix the driver.");
  CandidateSets sets;
  sets.positions = static_cast<std::int64_t>(response.size());
  sets.k = 2;
  for (std::size_t t = 0; t < response.size(); ++t) {
    sets.tokens.push_back(static_cast<TokenId>('a' + static_cast<int>(t)));
    sets.tokens.push_back(tokenizer.end_token());
  }
  const SparseRows rows = candidate_texts(tokenizer, response, sets, 64);
  REQUIRE(rows.rows() == sets.positions * 3);
  const LinearHead head = some_head();
  std::string prefix;
  for (std::size_t t = 0; t < response.size(); ++t) {
    const auto row = static_cast<std::int64_t>(t) * 3;
    const std::string first = prefix + std::string(tokenizer.bytes(sets.tokens[t * 2]));
    CHECK(rows.dot(row, head.direction) == doctest::Approx(direct(head, first)));
    CHECK(rows.dot(row + 1, head.direction) == doctest::Approx(direct(head, prefix)));
    prefix += tokenizer.bytes(response[t]);
    CHECK(rows.dot(row + 2, head.direction) == doctest::Approx(direct(head, prefix)));
  }
  CHECK(prefix == "Fix the driver.");
}

TEST_CASE("a text reward follows each item of a batch") {
  const Tokenizer tokenizer = small_tokenizer();
  const LinearHead head = some_head();
  TextReward reward(tokenizer, head, 2);
  const std::vector<TokenId> step = {'a', 'b', 'c', tokenizer.end_token()};
  const auto first = reward.score(step);
  CHECK(first[1] == doctest::Approx(direct(head, tokenizer.bytes('b'))));
  CHECK(first[3] == doctest::Approx(direct(head, "")));
  reward.choose(std::vector<std::int32_t>{1, 0});
  const auto second = reward.score(step);
  const auto bytes = [&](TokenId token) { return std::string(tokenizer.bytes(token)); };
  CHECK(second[0] == doctest::Approx(direct(head, bytes('b') + bytes('a'))));
  CHECK(second[2] == doctest::Approx(direct(head, bytes('c') + bytes('c'))));
  CHECK(second[3] == doctest::Approx(direct(head, bytes('c'))));
}

}  // namespace
}  // namespace prefgrid
