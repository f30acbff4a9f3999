#include "worker/decoding/decoder.h"

#include "tests/worker/decoding/naive.h"
#include "worker/decoding/candidate_sets.h"
#include "worker/decoding/hidden_state_reward.h"
//
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/seed.h"

namespace prefgrid {
namespace {

constexpr TokenId end_token = 60;
const auto quiet = [](std::int64_t) {};

LinearHead random_head(std::uint64_t seed) {
  LinearHead head;
  RandomStream stream(seed, "tests/head");
  for (int i = 0; i < 32; ++i) head.direction.push_back(static_cast<float>(stream.normal()));
  return head;
}

double naive_reward(const Transformer& backbone, const LinearHead& head,
                    const std::vector<TokenId>& tokens) {
  const at::Tensor state = naive_state(backbone, tokens).contiguous();
  double sum = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    sum += static_cast<double>(state.data_ptr<float>()[i]) * head.direction[i];
  }
  return sum;
}

// ARGS written out: a full forward pass of both models for every candidate of every step.
std::vector<TokenId> naive_args(const Transformer& policy, const Transformer& backbone,
                                const LinearHead& head, const std::vector<TokenId>& prompt,
                                const DecodeOptions& options) {
  std::vector<TokenId> response;
  for (std::int64_t step = 0; step < options.max_new_tokens; ++step) {
    const std::vector<TokenId> prefix = joined(prompt, response);
    const at::Tensor log_probs = naive_log_probs(policy, prefix).contiguous();
    const std::span<const float> row(log_probs.data_ptr<float>(), 61);
    TokenId best = -1;
    double best_score = 0;
    for (const TokenId token : top_candidates(row, options.k)) {
      const std::vector<TokenId> whole = token == end_token ? prefix : joined(prefix, {token});
      const double score = row[static_cast<std::size_t>(token)] +
                           options.weight * naive_reward(backbone, head, whole);
      if (best < 0 || score > best_score) {
        best = token;
        best_score = score;
      }
    }
    if (best == end_token) break;
    response.push_back(best);
  }
  return response;
}

std::vector<std::vector<TokenId>> some_prompts(std::uint64_t seed) {
  return {random_tokens(seed, 9), random_tokens(seed + 1, 1), random_tokens(seed + 2, 14)};
}

DecodeOptions options_of(double weight, std::int64_t k) {
  DecodeOptions options;
  options.region = 20;
  options.max_new_tokens = 12;
  options.k = k;
  options.weight = weight;
  options.end_token = end_token;
  return options;
}

std::vector<Decoded> decode_args(const Transformer& policy, const Transformer& backbone,
                                 const LinearHead& head,
                                 const std::vector<std::vector<TokenId>>& prompts,
                                 const DecodeOptions& options) {
  HiddenStateReward reward(backbone, head, prompts, options.region, options.max_new_tokens,
                           options.k, options.end_token);
  auto decoded = decode_guided(policy, prompts, options, reward, quiet);
  DOCTEST_REQUIRE(decoded.ok());
  return *decoded;
}

DOCTEST_TEST_CASE("tree decoding chooses the tokens that full passes per candidate choose") {
  const Transformer policy = random_model(test_seed());
  const Transformer backbone = random_model(test_seed() + 1, 4);
  const LinearHead head = random_head(test_seed());
  const auto prompts = some_prompts(test_seed());
  for (const double weight : {0.0, 0.3, 5.0}) {
    const DecodeOptions options = options_of(weight, 4);
    const auto decoded = decode_args(policy, backbone, head, prompts, options);
    for (std::size_t item = 0; item < prompts.size(); ++item) {
      DOCTEST_CHECK(decoded[item].tokens ==
                    naive_args(policy, backbone, head, prompts[item], options));
    }
  }
}

DOCTEST_TEST_CASE("weight 0 and greedy agree, and follow full forward passes") {
  const Transformer policy = random_model(test_seed() + 5);
  const LinearHead head = random_head(test_seed());
  const auto prompts = some_prompts(test_seed() + 5);
  const DecodeOptions options = options_of(0, 3);
  const auto greedy = decode_greedy(policy, prompts, options, quiet);
  const auto guided = decode_args(policy, policy, head, prompts, options);
  for (std::size_t item = 0; item < prompts.size(); ++item) {
    DOCTEST_CHECK(greedy[item].tokens == guided[item].tokens);
    DOCTEST_CHECK(greedy[item].tokens == naive_args(policy, policy, head, prompts[item], options));
  }
}

// A reward that wants a list of tokens, one after the other.
class Wish : public CandidateReward {
 public:
  Wish(std::vector<TokenId> wanted, std::size_t items)
      : wanted_(std::move(wanted)), items_(items) {}
  std::vector<float> score(std::span<const TokenId> candidates) override {
    std::vector<float> rewards;
    for (const TokenId token : candidates) {
      rewards.push_back(step_ < wanted_.size() && token == wanted_[step_] ? 1.0F : 0.0F);
    }
    return rewards;
  }
  void choose(std::span<const std::int32_t> chosen) override {
    DOCTEST_CHECK(chosen.size() == items_);
    ++step_;
  }

 private:
  std::vector<TokenId> wanted_;
  std::size_t items_;
  std::size_t step_ = 0;
};

DOCTEST_TEST_CASE("decoding stops at the end token, which is not part of the response") {
  const Transformer policy = random_model(test_seed() + 7);
  const std::vector<std::vector<TokenId>> prompts = {random_tokens(3, 4)};
  Wish wish({7, 8, end_token}, 1);
  const auto decoded = decode_guided(policy, prompts, options_of(1e6, 61), wish, quiet);
  DOCTEST_REQUIRE(decoded.ok());
  DOCTEST_CHECK((*decoded)[0].tokens == std::vector<TokenId>{7, 8});
  DOCTEST_CHECK((*decoded)[0].ended);
}

DOCTEST_TEST_CASE("decoding is cut at max_new_tokens") {
  const Transformer policy = random_model(test_seed() + 8);
  const std::vector<std::vector<TokenId>> prompts = {random_tokens(3, 4)};
  Wish wish(std::vector<TokenId>(12, 5), 1);
  const auto decoded = decode_guided(policy, prompts, options_of(1e6, 61), wish, quiet);
  DOCTEST_REQUIRE(decoded.ok());
  DOCTEST_CHECK((*decoded)[0].tokens == std::vector<TokenId>(12, 5));
  DOCTEST_CHECK_FALSE((*decoded)[0].ended);
}

DOCTEST_TEST_CASE("a reward that is not finite is an error that names item and step") {
  const Transformer policy = random_model(test_seed() + 9);
  LinearHead head = random_head(1);
  head.direction[3] = std::nanf("");
  const auto prompts = some_prompts(4);
  const DecodeOptions options = options_of(1, 2);
  HiddenStateReward reward(policy, head, prompts, options.region, options.max_new_tokens, options.k,
                           options.end_token);
  const auto decoded = decode_guided(policy, prompts, options, reward, quiet);
  DOCTEST_REQUIRE_FALSE(decoded.ok());
  DOCTEST_CHECK(decoded.error().message.find("item 0 at step 0") != std::string::npos);
}

// Scores of the first step, bit by bit.
std::vector<float> first_scores(const Transformer& backbone,
                                const std::vector<std::vector<TokenId>>& prompts) {
  HiddenStateReward reward(backbone, random_head(2), prompts, 20, 4, 3, end_token);
  std::vector<TokenId> candidates;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (const TokenId token : {4, 9, 11}) candidates.push_back(token);
  }
  (void)reward.score(candidates);
  reward.choose(std::vector<std::int32_t>(prompts.size(), 2));
  return reward.score(candidates);
}

DOCTEST_TEST_CASE("a row's bits do not depend on its neighbours in the batch") {
  const Transformer backbone = random_model(test_seed() + 11, 1);
  const std::vector<TokenId> own = random_tokens(21, 8);
  const auto left = first_scores(backbone, {own, random_tokens(22, 3), random_tokens(23, 17)});
  const auto right = first_scores(backbone, {own, random_tokens(24, 19), random_tokens(25, 1)});
  for (std::size_t i = 0; i < 3; ++i) DOCTEST_CHECK(left[i] == right[i]);
  DOCTEST_CHECK(left[4] != right[4]);
}

}  // namespace
}  // namespace prefgrid
