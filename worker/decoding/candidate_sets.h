// The candidate sets C_t of a response under a policy, and what is made of them: S(y), the guided
// policy's log-probability of the response, for any number of weights at once (methods: "policy
// accuracy", variant `policy`). The arithmetic is free of torch and in double.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/nn/tokenizer.h"

namespace prefgrid {

// The k likeliest tokens of one row of log-probabilities, likeliest first; ties go to the smaller
// token. k is cut to the row's length.
std::vector<TokenId> top_candidates(std::span<const float> log_probs, std::int64_t k);

struct CandidateSets {
  std::int64_t positions = 0;                // T, the end token counted
  std::int64_t k = 0;                        // candidates per position
  std::vector<TokenId> tokens;               // [T, k], likeliest first
  std::vector<float> log_probs;              // [T, k], over the whole vocabulary
  std::vector<float> response_log_probs;     // [T], of y_t
  std::vector<std::int32_t> response_index;  // [T]: y_t's place in its set; -1: it is forced in

  std::int64_t forced() const;     // positions whose token is not among the candidates
  double log_probability() const;  // log π(y | x) over the whole vocabulary, nats
};

// log_probs: [T, vocabulary] row-major; response: [T].
CandidateSets make_candidate_sets(std::span<const float> log_probs, std::int64_t vocabulary,
                                  std::span<const TokenId> response, std::int64_t k);

// The same sets under another policy (or another prompt): its log-probabilities of those tokens.
CandidateSets rescore(const CandidateSets& sets, std::span<const float> log_probs,
                      std::int64_t vocabulary, std::span<const TokenId> response);

// S(y) = Σ_t log π_RGD(y_t | x, y<t), π_RGD ∝ π·exp(w·r) over C_t ∪ {y_t}, in nats, for each w.
// rewards: [T, k + 1], those of the candidates and, last, that of y_t; already scaled.
std::vector<double> guided_log_probability(const CandidateSets& sets,
                                           std::span<const float> rewards,
                                           std::span<const double> weights);

// Σ_t of the population deviation of r within C_t (the forced token left out).
double sum_of_set_deviations(const CandidateSets& sets, std::span<const float> rewards);

}  // namespace prefgrid
