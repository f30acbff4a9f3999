#include "worker/decoding/packed_scoring.h"

#include "tests/worker/decoding/naive.h"
//
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

#include "tests/support/seed.h"

namespace prefgrid {
namespace {

constexpr TokenId end_token = 60;

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

struct Scene {
  Transformer policy;
  Transformer backbone;
  std::vector<TokenId> prompt;
  std::vector<TokenId> response;
};

Scene scene(std::uint64_t seed, std::size_t prompt, std::size_t response) {
  Scene made{random_model(seed), random_model(seed + 1, 4), random_tokens(seed + 2, prompt),
             random_tokens(seed + 3, response)};
  made.response.push_back(end_token);
  return made;
}

CandidateSets sets_of(const Scene& at, std::int64_t k) {
  PromptState state = prefill(at.policy, at.prompt, 0);
  const at::Tensor log_probs = response_log_probs(at.policy, state, at.response);
  return make_candidate_sets(
      {log_probs.data_ptr<float>(), static_cast<std::size_t>(log_probs.numel())}, log_probs.size(1),
      at.response, k);
}

// Every state of candidate_states, by a forward pass of its own.
void check_against_naive(const Scene& at, std::int64_t k) {
  const CandidateSets sets = sets_of(at, k);
  const auto positions = static_cast<std::int64_t>(at.response.size());
  PromptState state = prefill(at.backbone, at.prompt, packed_capacity(positions));
  const at::Tensor packed = candidate_states(at.backbone, state, at.response, sets, end_token);
  DOCTEST_REQUIRE(packed.sizes() == at::IntArrayRef({positions, k + 1, 32}));
  DOCTEST_CHECK(state.cache.length == static_cast<std::int64_t>(at.prompt.size()));
  for (std::int64_t t = 0; t < positions; ++t) {
    const std::vector<TokenId> prefix =
        joined(at.prompt, {at.response.begin(), at.response.begin() + t});
    for (std::int64_t j = 0; j <= k; ++j) {
      const TokenId token = j == k ? at.response[static_cast<std::size_t>(t)]
                                   : sets.tokens[static_cast<std::size_t>(t * k + j)];
      const std::vector<TokenId> whole = token == end_token ? prefix : joined(prefix, {token});
      DOCTEST_CHECK(largest_difference(packed[t][j], naive_state(at.backbone, whole)) < 1e-4);
    }
  }
}

DOCTEST_TEST_CASE("packed states equal one forward pass per position and candidate") {
  check_against_naive(scene(test_seed(), 11, 9), 5);
}

DOCTEST_TEST_CASE("packed states are right at the edges: one-token prompt, empty response, k = 1") {
  check_against_naive(scene(test_seed() + 10, 1, 4), 3);
  check_against_naive(scene(test_seed() + 20, 6, 0), 4);
  check_against_naive(scene(test_seed() + 30, 6, 5), 1);
}

DOCTEST_TEST_CASE("leaves beyond one pass follow over the kept prefix") {
  const Scene at = scene(test_seed() + 40, 5, 24);
  DOCTEST_REQUIRE(24 * 50 > packed_rows_per_pass);
  check_against_naive(at, 50);
}

DOCTEST_TEST_CASE("response log-probabilities equal a forward pass per position") {
  const Scene at = scene(test_seed() + 50, 7, 6);
  PromptState state = prefill(at.policy, at.prompt, 0);
  const at::Tensor log_probs = response_log_probs(at.policy, state, at.response);
  DOCTEST_REQUIRE(log_probs.size(0) == 7);
  for (std::size_t t = 0; t < at.response.size(); ++t) {
    const std::vector<TokenId> prefix = joined(
        at.prompt, {at.response.begin(), at.response.begin() + static_cast<std::ptrdiff_t>(t)});
    DOCTEST_CHECK(largest_difference(log_probs[static_cast<std::int64_t>(t)],
                                     naive_log_probs(at.policy, prefix)) < 1e-4);
  }
}

DOCTEST_TEST_CASE(
    "a second response over the same prompt state has the same bits as over a new one") {
  const Scene at = scene(test_seed() + 60, 9, 8);
  const CandidateSets sets = sets_of(at, 4);
  PromptState used = prefill(at.backbone, at.prompt, packed_capacity(9));
  (void)candidate_states(at.backbone, used, at.response, sets, end_token);
  PromptState fresh = prefill(at.backbone, at.prompt, packed_capacity(9));
  DOCTEST_CHECK(at::equal(candidate_states(at.backbone, used, at.response, sets, end_token),
                          candidate_states(at.backbone, fresh, at.response, sets, end_token)));
}

}  // namespace
}  // namespace prefgrid
