#include "worker/decoding/candidate_sets.h"

#include <doctest/doctest.h>

#include <cmath>

#include "common/random.h"
#include "tests/support/seed.h"

namespace prefgrid {
namespace {

std::vector<float> random_log_probs(std::uint64_t seed, std::size_t rows, std::size_t vocabulary) {
  RandomStream stream(seed, "tests/log_probs");
  std::vector<float> all;
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<double> scores(vocabulary);
    double sum = 0;
    for (double& score : scores) {
      score = 2 * stream.normal();
      sum += std::exp(score);
    }
    for (const double score : scores) all.push_back(static_cast<float>(score - std::log(sum)));
  }
  return all;
}

TEST_CASE(
    "candidates are the likeliest tokens, ties by the smaller token, k cut to the vocabulary") {
  const std::vector<float> row = {-3, -1, -2, -1, -5};
  CHECK(top_candidates(row, 3) == std::vector<TokenId>{1, 3, 2});
  CHECK(top_candidates(row, 9) == std::vector<TokenId>{1, 3, 2, 0, 4});
  CHECK(top_candidates(row, 1) == std::vector<TokenId>{1});
}

TEST_CASE("a token outside the candidates is forced in and counted") {
  const std::vector<float> log_probs = {-0.1F, -3, -4, /**/ -3, -0.1F, -4};
  const std::vector<TokenId> response = {0, 2};
  const CandidateSets sets = make_candidate_sets(log_probs, 3, response, 2);
  CHECK(sets.response_index == std::vector<std::int32_t>{0, -1});
  CHECK(sets.forced() == 1);
  CHECK(sets.tokens == std::vector<TokenId>{0, 1, 1, 0});
  CHECK(sets.log_probability() == doctest::Approx(-4.1));
}

TEST_CASE("S(y) equals the softmax over C_t and y_t written out") {
  constexpr std::size_t positions = 4;
  constexpr std::size_t vocabulary = 9;
  const std::vector<float> log_probs = random_log_probs(test_seed(), positions, vocabulary);
  const std::vector<TokenId> response = {3, 8, 0, 5};
  const CandidateSets sets = make_candidate_sets(log_probs, vocabulary, response, 3);
  RandomStream stream(test_seed(), "tests/rewards");
  std::vector<float> rewards(positions * 4);
  for (std::size_t t = 0; t < positions; ++t) {
    for (std::size_t j = 0; j < 4; ++j) rewards[t * 4 + j] = static_cast<float>(stream.normal());
    // The real token has one reward, wherever it stands.
    if (sets.response_index[t] >= 0) {
      rewards[t * 4 + 3] = rewards[t * 4 + static_cast<std::size_t>(sets.response_index[t])];
    }
  }
  const std::vector<double> weights = {0, 0.5, 4};
  const std::vector<double> scores = guided_log_probability(sets, rewards, weights);
  for (std::size_t w = 0; w < weights.size(); ++w) {
    double expected = 0;
    for (std::size_t t = 0; t < positions; ++t) {
      double sum = 0;
      const auto mass = [&](TokenId token, float r) {
        return std::exp(log_probs[t * vocabulary + static_cast<std::size_t>(token)]) *
               std::exp(weights[w] * r);
      };
      for (std::size_t j = 0; j < 3; ++j) sum += mass(sets.tokens[t * 3 + j], rewards[t * 4 + j]);
      const double own = mass(response[t], rewards[t * 4 + 3]);
      if (sets.response_index[t] < 0) sum += own;
      expected += std::log(own / sum);
    }
    CHECK(scores[w] == doctest::Approx(expected).epsilon(1e-5));
  }
}

TEST_CASE("a constant added to every reward changes no S(y)") {
  const std::vector<float> log_probs = random_log_probs(test_seed() + 1, 3, 7);
  const std::vector<TokenId> response = {1, 6, 2};
  const CandidateSets sets = make_candidate_sets(log_probs, 7, response, 4);
  const std::vector<float> zero(15, 0.0F);
  const std::vector<float> ten(15, 10.0F);
  const std::vector<double> weights = {2};
  CHECK(guided_log_probability(sets, zero, weights)[0] ==
        doctest::Approx(guided_log_probability(sets, ten, weights)[0]).epsilon(1e-9));
}

TEST_CASE("huge weights do not overflow") {
  const std::vector<float> log_probs = random_log_probs(test_seed() + 2, 1, 5);
  const std::vector<TokenId> response = {4};
  const CandidateSets sets = make_candidate_sets(log_probs, 5, response, 5);
  std::vector<float> rewards(6, 0.0F);
  for (std::size_t j = 0; j < 5; ++j) {
    if (sets.tokens[j] == 4) rewards[j] = rewards[5] = 1000;
  }
  const std::vector<double> weights = {1e6};
  CHECK(guided_log_probability(sets, rewards, weights)[0] == doctest::Approx(0.0));
}

TEST_CASE("other log-probabilities keep the sets and change the numbers") {
  const std::vector<float> base = random_log_probs(test_seed() + 3, 2, 6);
  const std::vector<float> other = random_log_probs(test_seed() + 4, 2, 6);
  const std::vector<TokenId> response = {5, 0};
  const CandidateSets sets = make_candidate_sets(base, 6, response, 2);
  const CandidateSets moved = rescore(sets, other, 6, response);
  CHECK(moved.tokens == sets.tokens);
  CHECK(moved.response_index == sets.response_index);
  CHECK(moved.response_log_probs[1] == other[6]);
  CHECK(moved.log_probs[0] == other[static_cast<std::size_t>(sets.tokens[0])]);
}

TEST_CASE("the deviation within a set is the population's, without the forced token") {
  CandidateSets sets;
  sets.positions = 2;
  sets.k = 2;
  const std::vector<float> rewards = {1, 3, 100, /**/ 5, 5, 5};
  CHECK(sum_of_set_deviations(sets, rewards) == doctest::Approx(1.0));
}

}  // namespace
}  // namespace prefgrid
