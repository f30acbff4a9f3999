// Texts to training rows: which tokens stand where, what they may see and what they count.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/random.h"
#include "worker/nn/tokenizer.h"

namespace prefgrid {

// [begin] prompt completion [end]; the prompt cut at its start, the completion whole.
struct TokenItem {
  std::vector<TokenId> tokens;
  std::size_t completion_at = 0;  // where the completion's tokens begin
};
TokenItem token_item(const Tokenizer& tokenizer, std::string_view prompt,
                     std::string_view completion, std::int64_t max_prompt_tokens);

// A row of the batch: position t holds inputs[t] and is to predict targets[t].
struct TokenRow {
  std::vector<std::int64_t> inputs;
  std::vector<std::int64_t> targets;
  std::vector<std::int64_t> segments;
  std::vector<float> weights;  // 0: does not count
};

struct PackOptions {
  std::int64_t row_tokens = 0;
  float prompt_weight = 1;  // of a prompt's tokens in the loss; a completion's count 1
};

// Appends items to rows of a fixed length; items of one segment see the earlier ones of it.
class RowPacker {
 public:
  explicit RowPacker(const PackOptions& options) : options_(options) {}

  // False: longer than a row.
  bool add(const TokenItem& item, bool new_segment);
  // What is begun is filled up with tokens that count nothing.
  std::vector<TokenRow> finish();

 private:
  void close_row();

  PackOptions options_;
  std::vector<TokenRow> rows_;
  TokenRow open_;
  std::int64_t segment_ = 0;
};

// One pass over a corpus: authors and their items in random order, several items of an author in a
// segment (1, 2, 4, 8 or 16 at random, so that both lone items and long contexts are familiar).
std::vector<TokenRow> pack_epoch(const std::vector<std::vector<TokenItem>>& authors,
                                 const PackOptions& options, RandomStream& random);

}  // namespace prefgrid
