// The whole transformer once more, as plain loops in double: the second source of the tests.
#pragma once

#include <vector>

#include "worker/nn/transformer.h"

namespace prefgrid {

// visible[i]: the rows (of the same list) that row i attends to; itself must be among them.
struct ReferenceInput {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> positions;
  std::vector<std::vector<std::size_t>> visible;
};
// One after the other, each seeing all before it.
ReferenceInput causal_input(const std::vector<std::int64_t>& tokens);

// Final hidden states [rows][d_model], by the formulas of the Llama paper, token by token.
std::vector<std::vector<double>> reference_hidden(const Transformer& model,
                                                  const ReferenceInput& input);
// [rows][vocab_size].
std::vector<std::vector<double>> reference_logits(const Transformer& model,
                                                  const ReferenceInput& input);

}  // namespace prefgrid
