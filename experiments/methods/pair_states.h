// φ of both sides of a pair: the backbone's final hidden state at the last token before the end
// token. One pass: both sides are branches over the shared prompt.
#pragma once

#include <span>

#include "worker/nn/tokenizer.h"
#include "worker/nn/transformer.h"

namespace prefgrid {

// prompt opens with the begin token; responses end with the end token. Returns [2, d_model]:
// chosen, rejected. An empty response has the state of the prompt's last token.
at::Tensor pair_states(const Transformer& backbone, std::span<const TokenId> prompt,
                       std::span<const TokenId> chosen, std::span<const TokenId> rejected);

}  // namespace prefgrid
