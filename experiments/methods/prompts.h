// Texts to tokens, the same for training, features, scoring and decoding: prompt and response are
// tokenised apart and joined; a prompt that is too long is cut at its start, a response never.
// Free of torch.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "experiments/datasets/dataset.h"
#include "worker/nn/tokenizer.h"

namespace prefgrid {

// [begin token] + the last `max_prompt_tokens` tokens of the text.
std::vector<TokenId> prompt_tokens(const Tokenizer& tokenizer, std::string_view prompt,
                                   std::int64_t max_prompt_tokens);

// The text's tokens and the end token.
std::vector<TokenId> response_tokens(const Tokenizer& tokenizer, std::string_view response);

// Keeps the begin token and as much of the prompt's end as fits `limit` tokens, begin included.
void cut_start(std::vector<TokenId>& prompt, std::int64_t limit);

// A user's given set G_u in the order in which "the first n" of it are taken: by hash of the id.
std::vector<std::uint32_t> given_pairs(const Dataset& dataset, std::uint32_t user);
std::vector<std::uint32_t> given_completions(const Dataset& dataset, std::uint32_t user);

struct InContextOptions {
  std::int64_t shots = 0;
  std::int64_t shot_prompt_tokens = 0;
};

// Examples of a user for in-context learning, in the form that a policy is pretrained on: one
// document (begin, prompt, completion, end) after the other. The first `shots` items of the user's
// given set; completions where the user has any, else pairs with both sides, labelled. To be put
// before `prompt_tokens` of the item. Errors: the given set is empty.
Result<std::vector<TokenId>> in_context_examples(const Tokenizer& tokenizer, const Dataset& dataset,
                                                 std::uint32_t user,
                                                 const InContextOptions& options);

}  // namespace prefgrid
