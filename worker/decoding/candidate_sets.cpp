#include "worker/decoding/candidate_sets.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "common/check.h"

namespace prefgrid {

std::vector<TokenId> top_candidates(std::span<const float> log_probs, std::int64_t k) {
  std::vector<TokenId> order(log_probs.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](TokenId a, TokenId b) {
    const float left = log_probs[static_cast<std::size_t>(a)];
    const float right = log_probs[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  };
  const auto count = std::min(order.size(), static_cast<std::size_t>(k));
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  if (count < order.size()) std::nth_element(order.begin(), end, order.end(), likelier);
  std::sort(order.begin(), end, likelier);
  order.resize(count);
  return order;
}

std::int64_t CandidateSets::forced() const {
  return std::count(response_index.begin(), response_index.end(), -1);
}

double CandidateSets::log_probability() const {
  return std::accumulate(response_log_probs.begin(), response_log_probs.end(), 0.0);
}

CandidateSets make_candidate_sets(std::span<const float> log_probs, std::int64_t vocabulary,
                                  std::span<const TokenId> response, std::int64_t k) {
  CandidateSets sets;
  sets.positions = static_cast<std::int64_t>(response.size());
  sets.k = std::min(k, vocabulary);
  PREFGRID_CHECK(log_probs.size() == response.size() * static_cast<std::size_t>(vocabulary),
                 "log-probabilities and response differ in length");
  for (std::size_t t = 0; t < response.size(); ++t) {
    const auto row = log_probs.subspan(t * static_cast<std::size_t>(vocabulary),
                                       static_cast<std::size_t>(vocabulary));
    const std::vector<TokenId> top = top_candidates(row, sets.k);
    const auto found = std::find(top.begin(), top.end(), response[t]);
    sets.response_index.push_back(
        found == top.end() ? -1 : static_cast<std::int32_t>(found - top.begin()));
    sets.response_log_probs.push_back(row[static_cast<std::size_t>(response[t])]);
    for (const TokenId token : top) {
      sets.tokens.push_back(token);
      sets.log_probs.push_back(row[static_cast<std::size_t>(token)]);
    }
  }
  return sets;
}

CandidateSets rescore(const CandidateSets& sets, std::span<const float> log_probs,
                      std::int64_t vocabulary, std::span<const TokenId> response) {
  PREFGRID_CHECK(log_probs.size() == response.size() * static_cast<std::size_t>(vocabulary) &&
                     static_cast<std::int64_t>(response.size()) == sets.positions,
                 "log-probabilities, response and sets differ in length");
  CandidateSets result = sets;
  for (std::size_t t = 0; t < response.size(); ++t) {
    const auto row = log_probs.subspan(t * static_cast<std::size_t>(vocabulary),
                                       static_cast<std::size_t>(vocabulary));
    result.response_log_probs[t] = row[static_cast<std::size_t>(response[t])];
    for (std::size_t j = 0; j < static_cast<std::size_t>(sets.k); ++j) {
      const std::size_t at = t * static_cast<std::size_t>(sets.k) + j;
      result.log_probs[at] = row[static_cast<std::size_t>(sets.tokens[at])];
    }
  }
  return result;
}

namespace {

// log Σ exp of the k candidates' scores and, where it is forced in, the real token's.
double log_normaliser(const CandidateSets& sets, std::span<const float> rewards, std::size_t t,
                      double weight) {
  const auto k = static_cast<std::size_t>(sets.k);
  const auto score = [&](std::size_t j) {
    const double log_prob = j < k ? sets.log_probs[t * k + j] : sets.response_log_probs[t];
    return log_prob + weight * static_cast<double>(rewards[t * (k + 1) + j]);
  };
  const std::size_t count = sets.response_index[t] < 0 ? k + 1 : k;
  double highest = score(0);
  for (std::size_t j = 1; j < count; ++j) highest = std::max(highest, score(j));
  double sum = 0;
  for (std::size_t j = 0; j < count; ++j) sum += std::exp(score(j) - highest);
  return highest + std::log(sum);
}

}  // namespace

std::vector<double> guided_log_probability(const CandidateSets& sets,
                                           std::span<const float> rewards,
                                           std::span<const double> weights) {
  const auto k = static_cast<std::size_t>(sets.k);
  PREFGRID_CHECK(rewards.size() == static_cast<std::size_t>(sets.positions) * (k + 1),
                 "one reward per candidate and one per real token");
  std::vector<double> result;
  for (const double weight : weights) {
    double sum = 0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(sets.positions); ++t) {
      // Where y_t is a candidate, its score is taken from there: the very number that is summed.
      const std::int32_t place = sets.response_index[t];
      const std::size_t at = place < 0 ? k : static_cast<std::size_t>(place);
      const double log_prob = place < 0 ? sets.response_log_probs[t] : sets.log_probs[t * k + at];
      const double score = log_prob + weight * static_cast<double>(rewards[t * (k + 1) + at]);
      sum += score - log_normaliser(sets, rewards, t, weight);
    }
    result.push_back(sum);
  }
  return result;
}

double sum_of_set_deviations(const CandidateSets& sets, std::span<const float> rewards) {
  const auto k = static_cast<std::size_t>(sets.k);
  double total = 0;
  for (std::size_t t = 0; t < static_cast<std::size_t>(sets.positions); ++t) {
    const auto row = rewards.subspan(t * (k + 1), k);
    double mean = 0;
    for (const float r : row) mean += static_cast<double>(r) / static_cast<double>(k);
    double square = 0;
    for (const float r : row) square += (r - mean) * (r - mean);
    total += std::sqrt(square / static_cast<double>(k));
  }
  return total;
}

}  // namespace prefgrid
