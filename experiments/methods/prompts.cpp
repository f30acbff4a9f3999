#include "experiments/methods/prompts.h"

#include <algorithm>
#include <string>

#include "common/text.h"

namespace prefgrid {
namespace {

void append_end(std::vector<TokenId>& to, const std::vector<TokenId>& from, std::int64_t most) {
  const auto skipped = std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(from.size()) - most);
  to.insert(to.end(), from.begin() + skipped, from.end());
}

// Those of `ordered` that are among `given`, which is sorted.
std::vector<std::uint32_t> among(std::vector<std::uint32_t> ordered,
                                 const std::vector<std::uint32_t>& given) {
  std::erase_if(ordered, [&](std::uint32_t index) {
    return !std::binary_search(given.begin(), given.end(), index);
  });
  return ordered;
}

}  // namespace

std::vector<std::uint32_t> given_pairs(const Dataset& dataset, std::uint32_t user) {
  return among(dataset.pairs_of(user, Split::train), dataset.users[user].given_pairs);
}

std::vector<std::uint32_t> given_completions(const Dataset& dataset, std::uint32_t user) {
  return among(dataset.completions_of(user, Split::train), dataset.users[user].given_completions);
}

std::vector<TokenId> prompt_tokens(const Tokenizer& tokenizer, std::string_view prompt,
                                   std::int64_t max_prompt_tokens) {
  std::vector<TokenId> tokens = {tokenizer.begin_token()};
  append_end(tokens, tokenizer.encode(prompt), max_prompt_tokens);
  return tokens;
}

std::vector<TokenId> response_tokens(const Tokenizer& tokenizer, std::string_view response) {
  std::vector<TokenId> tokens = tokenizer.encode(response);
  tokens.push_back(tokenizer.end_token());
  return tokens;
}

void cut_start(std::vector<TokenId>& prompt, std::int64_t limit) {
  const auto size = static_cast<std::int64_t>(prompt.size());
  if (size <= limit) return;
  PREFGRID_CHECK(limit >= 1, "no room for the begin token");
  prompt.erase(prompt.begin() + 1, prompt.begin() + 1 + (size - limit));
}

Result<std::vector<TokenId>> in_context_examples(const Tokenizer& tokenizer, const Dataset& dataset,
                                                 std::uint32_t user,
                                                 const InContextOptions& options) {
  const User& person = dataset.users[user];
  const bool completions = !person.given_completions.empty();
  const std::vector<std::uint32_t> given =
      completions ? given_completions(dataset, user) : given_pairs(dataset, user);
  if (given.empty()) {
    return invalid_input("icl: user " + quoted(person.id) + " has no given items to show");
  }
  const auto shots = std::min(given.size(), static_cast<std::size_t>(options.shots));
  std::vector<TokenId> tokens;
  for (const std::uint32_t index : std::span(given).first(shots)) {
    const std::string& prompt =
        completions ? dataset.completions[index].prompt : dataset.pairs[index].prompt;
    const std::vector<TokenId> opening =
        prompt_tokens(tokenizer, prompt, options.shot_prompt_tokens);
    tokens.insert(tokens.end(), opening.begin(), opening.end());
    const std::string shown = completions ? dataset.completions[index].completion
                                          : "\npreferred: " + dataset.pairs[index].chosen +
                                                "\nnot preferred: " + dataset.pairs[index].rejected;
    const std::vector<TokenId> answer = response_tokens(tokenizer, shown);
    tokens.insert(tokens.end(), answer.begin(), answer.end());
  }
  return tokens;
}

}  // namespace prefgrid
