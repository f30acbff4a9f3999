// The catalogue's rows of methods, decoders and job kinds: their fields with type, default, range
// and help. Free of torch; the implementations are in experiments/methods and worker/decoding.
// Changing a default, or what a field means, bumps the version of the row.
#pragma once

#include <vector>

#include "experiments/catalog/catalog.h"

namespace prefgrid {

std::vector<MethodRow> method_rows();
std::vector<DecoderRow> decoder_rows();

// All but "pretrain", whose fields are the model's (experiments/catalog/model_fields.h). The row
// "generate" is no job kind: it holds the fields that every generate.<decoder> job reads besides
// the decoder's own, as a spec's evaluation section sets them. policy_accuracy has one parameter
// more, `weights`, a list of reals (default: policy_accuracy_weights()).
std::vector<KindRow> kind_rows();

// Read by train.<method that trains a model>, embed.lm, policy_accuracy and generate.*; one value
// for a whole experiment, else the reward would be judged on other prompts than it was trained on.
Field max_prompt_tokens_field();

// {0, 0.5, 1, 2, 4, 8, 16}
std::vector<double> policy_accuracy_weights();

}  // namespace prefgrid
