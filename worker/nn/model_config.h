// A model's shape, as `config.json` of a Hugging Face folder says it. Free of torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/result.h"

namespace prefgrid {

struct ModelConfig {
  std::string architecture = "LlamaForCausalLM";
  std::int64_t vocab_size = 0;
  std::int64_t d_model = 0;     // hidden_size
  std::int64_t layers = 0;      // num_hidden_layers
  std::int64_t heads = 0;       // num_attention_heads
  std::int64_t kv_heads = 0;    // num_key_value_heads; divides heads
  std::int64_t head_dim = 0;    // even
  std::int64_t d_ff = 0;        // intermediate_size
  std::int64_t max_tokens = 0;  // max_position_embeddings
  double rope_theta = 10'000;
  double rms_epsilon = 1e-5;
  bool tied_embeddings = true;

  bool operator==(const ModelConfig&) const = default;
};

// Errors name the file and the field.
Result<ModelConfig> load_model_config(const std::filesystem::path& folder);
Result<void> save_model_config(const ModelConfig& config, const std::filesystem::path& folder);

}  // namespace prefgrid
