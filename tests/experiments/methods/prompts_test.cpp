#include "experiments/methods/prompts.h"

#include <doctest/doctest.h>

#include "tests/experiments/methods/support.h"

namespace prefgrid {
namespace {

TEST_CASE("a long prompt is cut at its start, behind the begin token; a response never") {
  const Tokenizer tokenizer = small_tokenizer();
  const std::vector<TokenId> all = tokenizer.encode("the server draws the window. Fix it");
  const auto prompt = prompt_tokens(tokenizer, "the server draws the window. Fix it", 3);
  REQUIRE(prompt.size() == 4);
  CHECK(prompt[0] == tokenizer.begin_token());
  CHECK(std::vector<TokenId>(prompt.begin() + 1, prompt.end()) ==
        std::vector<TokenId>(all.end() - 3, all.end()));
  CHECK(prompt_tokens(tokenizer, "", 3) == std::vector<TokenId>{tokenizer.begin_token()});
  const auto response = response_tokens(tokenizer, "the driver draws.");
  CHECK(response.back() == tokenizer.end_token());
  CHECK(tokenizer.decode(response) == "the driver draws.");
}

TEST_CASE("cutting to a limit keeps the begin token and the end") {
  std::vector<TokenId> prompt = {9, 1, 2, 3, 4};
  cut_start(prompt, 3);
  CHECK(prompt == std::vector<TokenId>{9, 3, 4});
  cut_start(prompt, 1);
  CHECK(prompt == std::vector<TokenId>{9});
}

Dataset given_dataset() {
  Dataset dataset;
  dataset.users = {make_user("ada", true, {}, {0, 1}), make_user("bob", false, {0}),
                   make_user("eve", true)};
  dataset.completions = {{"c0", 0, "the server", "draws", Split::train},
                         {"c1", 0, "the driver", "Fix.", Split::train}};
  dataset.pairs = {{"p0", 1, "window", "good", "bad", Split::train}};
  return dataset;
}

TEST_CASE("examples are whole documents, in the order of the given set, as many as asked for") {
  const Tokenizer tokenizer = small_tokenizer();
  const Dataset dataset = given_dataset();
  const std::vector<std::uint32_t> order = given_completions(dataset, 0);
  REQUIRE(order == dataset.completions_of(0, Split::train));  // by hash of the id
  const CompletionItem& first = dataset.completions[order[0]];
  const CompletionItem& second = dataset.completions[order[1]];
  const auto one = in_context_examples(tokenizer, dataset, 0, {1, 100});
  REQUIRE(one.ok());
  std::vector<TokenId> expected = prompt_tokens(tokenizer, first.prompt, 100);
  const auto answer = response_tokens(tokenizer, first.completion);
  expected.insert(expected.end(), answer.begin(), answer.end());
  CHECK(*one == expected);
  const auto all = in_context_examples(tokenizer, dataset, 0, {9, 100});
  REQUIRE(all.ok());
  CHECK(tokenizer.decode(*all) ==
        first.prompt + first.completion + second.prompt + second.completion);
  const auto cut = in_context_examples(tokenizer, dataset, 0, {1, 0});
  REQUIRE(cut.ok());
  CHECK(tokenizer.decode(*cut) == first.completion);
}

TEST_CASE("on pair data both sides are shown, labelled") {
  const Tokenizer tokenizer = small_tokenizer();
  const auto shown = in_context_examples(tokenizer, given_dataset(), 1, {4, 100});
  REQUIRE(shown.ok());
  CHECK(tokenizer.decode(*shown) == "window\npreferred: good\nnot preferred: bad");
}

TEST_CASE("a user without given items has no examples: an error that names it") {
  const auto none = in_context_examples(small_tokenizer(), given_dataset(), 2, {4, 100});
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message.find("eve") != std::string::npos);
}

}  // namespace
}  // namespace prefgrid
