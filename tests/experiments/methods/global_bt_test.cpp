#include "experiments/methods/global_bt.h"

#include "experiments/methods/pair_states.h"
//
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

#include <cmath>

#include "common/random.h"
#include "tests/experiments/methods/support.h"
#include "tests/worker/decoding/naive.h"

namespace prefgrid {
namespace {

PairTokens random_pair(std::uint64_t seed, std::size_t prompt, std::size_t chosen,
                       std::size_t rejected) {
  return {random_tokens(seed, prompt), joined(random_tokens(seed + 1, chosen), {60}),
          joined(random_tokens(seed + 2, rejected), {60})};
}

std::vector<TokenId> without_end(std::vector<TokenId> tokens) {
  tokens.pop_back();
  return tokens;
}

DOCTEST_TEST_CASE("both sides' states from one branched pass equal a pass each") {
  const Transformer model = random_model(3);
  for (const auto& sizes : {std::array<std::size_t, 3>{8, 4, 7}, {1, 3, 1}, {5, 0, 2}}) {
    const PairTokens pair = random_pair(11, sizes[0], sizes[1], sizes[2]);
    const at::Tensor states = pair_states(model, pair.prompt, pair.chosen, pair.rejected);
    const at::Tensor chosen = naive_state(model, joined(pair.prompt, without_end(pair.chosen)));
    const at::Tensor rejected = naive_state(model, joined(pair.prompt, without_end(pair.rejected)));
    DOCTEST_CHECK((states[0] - chosen).abs().max().item<double>() < 1e-4);
    DOCTEST_CHECK((states[1] - rejected).abs().max().item<double>() < 1e-4);
  }
}

DOCTEST_TEST_CASE("the batch's loss is the mean of -log sigmoid(r+ - r-) at the last tokens") {
  const Transformer model = random_model(5);
  const PairTokens pairs[2] = {random_pair(21, 6, 3, 9), random_pair(31, 2, 5, 1)};
  at::Tensor head = at::arange(32).to(at::kFloat) * 0.02 - 0.3;
  double expected = 0;
  for (const PairTokens& pair : pairs) {
    const at::Tensor r = at::mv(pair_states(model, pair.prompt, pair.chosen, pair.rejected), head);
    expected += std::log1p(std::exp(-(r[0] - r[1]).item<double>())) / 2;
  }
  const at::NoGradGuard no_gradients;
  const double loss = bradley_terry_loss(model, head, {&pairs[0], &pairs[1]}).item<double>();
  DOCTEST_CHECK(loss == doctest::Approx(expected).epsilon(1e-4));
}

// The chosen side ends with a full stop, the rejected one does not.
Dataset full_stops() {
  Dataset dataset;
  dataset.users = {make_user("ada", true), make_user("bob", false)};
  const char* words[] = {"driver", "window", "server", "manager", "draws"};
  for (int i = 0; i < 60; ++i) {
    const std::string text = std::string("fix the ") + words[i % 5] + " " + words[(i / 5) % 5];
    const Split split = i < 45 ? Split::train : Split::valid;
    dataset.pairs.push_back({"p" + std::to_string(i), 0, "the server", text + ".", text, split});
  }
  // An unseen user with the opposite taste, who must not be trained on.
  for (int i = 0; i < 60; ++i) {
    dataset.pairs.push_back({"q" + std::to_string(i), 1, "the server", "x", "x.", Split::train});
  }
  return dataset;
}

DOCTEST_TEST_CASE("training learns a habit from the seen users' pairs, the same bits each time") {
  const Tokenizer tokenizer = small_tokenizer();
  ModelConfig config;
  config.vocab_size = tokenizer.vocab_size();
  config.d_model = 32;
  config.layers = 2;
  config.heads = config.kv_heads = 2;
  config.head_dim = 16;
  config.d_ff = 64;
  config.max_tokens = 64;
  const Dataset dataset = full_stops();
  const GlobalBtOptions options{3e-3, 0.01, 16, 6, 16};
  std::uint64_t calls = 0;
  const auto count = [&](std::uint64_t, std::uint64_t total, double) {
    ++calls;
    DOCTEST_CHECK(total == 18);
  };
  Transformer first = Transformer::initialise(config, 1);
  const auto training = train_global_bt(first, tokenizer, dataset, options, 7, count);
  DOCTEST_REQUIRE(training.ok());
  DOCTEST_CHECK(calls == 18);
  DOCTEST_CHECK(training->valid_pairs == 15);
  DOCTEST_CHECK(training->valid_accuracy > 0.9);
  Transformer second = Transformer::initialise(config, 1);
  const auto again = train_global_bt(second, tokenizer, dataset, options, 7, count);
  DOCTEST_REQUIRE(again.ok());
  DOCTEST_CHECK(at::equal(training->head, again->head));
  const auto other = train_global_bt(second, tokenizer, dataset, options, 8, count);
  DOCTEST_REQUIRE(other.ok());
  DOCTEST_CHECK_FALSE(at::equal(training->head, other->head));
}

DOCTEST_TEST_CASE(
    "no train pairs, or a response longer than the context, is an error that says so") {
  const Tokenizer tokenizer = small_tokenizer();
  Dataset dataset = full_stops();
  const auto too_long = pair_tokens(tokenizer, dataset.pairs[0], 8, 3);
  DOCTEST_REQUIRE_FALSE(too_long.ok());
  DOCTEST_CHECK(too_long.error().message.find("p0") != std::string::npos);
  dataset.pairs.clear();
  Transformer model = random_model(1);
  DOCTEST_CHECK_FALSE(
      train_global_bt(model, tokenizer, dataset, {1e-3, 0, 4, 1, 8}, 0, [](auto, auto, auto) {
      }).ok());
}

}  // namespace
}  // namespace prefgrid
