// Fields of a model that is trained from scratch (job kind `pretrain`). Free of torch: the planner
// checks a spec with them, worker/nn/pretrain.h takes its options from them.
// The defaults make a model of about 0.5M parameters; d_model 192, heads 6, kv_heads 6 and
// d_ff 512 make one of 2M.
#pragma once

#include <vector>

#include "experiments/catalog/catalog.h"

namespace prefgrid {

inline std::vector<Field> pretrain_fields() {
  const auto integer = [](std::string_view name, std::int64_t value, double minimum, double maximum,
                          std::string_view help) {
    return Field{name, FieldType::integer, Value(value), minimum, maximum, {}, help};
  };
  const auto real = [](std::string_view name, double value, double minimum, double maximum,
                       std::string_view help) {
    return Field{name, FieldType::real, Value(value), minimum, maximum, {}, help};
  };
  return {
      integer("layers", 4, 1, 128, "decoder layers"),
      integer("d_model", 96, 8, 16384, "width of the hidden state; a multiple of heads"),
      integer("heads", 3, 1, 256, "attention heads; d_model / heads must be even"),
      integer("kv_heads", 3, 1, 256, "key and value heads; divides heads"),
      integer("d_ff", 256, 8, 65536, "width of the feed-forward layer"),
      integer("vocab_size", 1024, 258, 65536, "tokens of the byte-level BPE trained for it"),
      integer("max_tokens", 512, 16, 32768,
              "context length, and length of a training row, in tokens"),
      integer("tokens", 600'000, 1, 1e12, "training budget in tokens, all passes together"),
      real("learning_rate", 3e-3, 1e-8, 1, "peak of AdamW's learning rate"),
      integer("batch_tokens", 512, 16, 1e8, "tokens of one optimiser step; rounded to whole rows"),
      real("warmup_share", 0.1, 0, 1, "share of the steps in which the rate climbs to its peak"),
      real("weight_decay", 0.1, 0, 10, "decoupled decay of matrices; none on norms and embeddings"),
      real("clip_norm", 1.0, 1e-6, 1e6, "largest global norm of a gradient"),
      integer("max_prompt_tokens", 96, 1, 32768, "prompts are cut at their start to this length"),
      integer("pretrain_seed", 0, 0, 9007199254740992.0, "seed of the weights and the data order"),
  };
}

}  // namespace prefgrid
