// Where a Transformer's weights come from: a seed, or a Hugging Face folder.
#include <cmath>
#include <numbers>

#include "common/random.h"
#include "common/text.h"
#include "worker/nn/transformer.h"

namespace prefgrid {
namespace {

// out[i] depends on (seed, name, i) alone. Box-Muller on Philox: four normals a block.
void fill_normal(std::uint64_t seed, const std::string& name, double deviation, at::Tensor& out) {
  const std::uint64_t purpose = stable_hash(name);
  const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(seed),
                                         static_cast<std::uint32_t>(seed >> 32)};
  const std::int64_t size = out.numel();
  float* values = out.data_ptr<float>();
  for (std::int64_t block = 0; block * 4 < size; ++block) {
    const auto index = static_cast<std::uint64_t>(block);
    const auto bits =
        philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                static_cast<std::uint32_t>(purpose), static_cast<std::uint32_t>(purpose >> 32)},
               key);
    for (std::int64_t pair = 0; pair < 2; ++pair) {
      const double u = (static_cast<double>(bits[2 * pair]) + 1.0) * 0x1p-32;  // in (0, 1]
      const double angle = 2 * std::numbers::pi * 0x1p-32 * static_cast<double>(bits[2 * pair + 1]);
      const double radius = deviation * std::sqrt(-2.0 * std::log(u));
      const std::int64_t at = block * 4 + 2 * pair;
      if (at < size) values[at] = static_cast<float>(radius * std::cos(angle));
      if (at + 1 < size) values[at + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }
}

bool is_residual_projection(const std::string& name) {
  return name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
}

std::string shape_text(at::IntArrayRef sizes) {
  std::string text = "[";
  for (const std::int64_t size : sizes)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

Result<void> copy_weight(const std::string& file, const std::string& name, const TensorMap& tensors,
                         at::Tensor parameter) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return invalid_input(file + ": lacks the tensor " + name);
  const at::Tensor& tensor = found->second;
  if (!at::isFloatingType(tensor.scalar_type())) {
    return invalid_input(file + ": tensor " + name + " has dtype " +
                         c10::toString(tensor.scalar_type()) + ", a floating one is needed");
  }
  if (tensor.sizes() != parameter.sizes()) {
    return invalid_input(file + ": tensor " + name + " has shape " + shape_text(tensor.sizes()) +
                         ", config.json asks for " + shape_text(parameter.sizes()));
  }
  parameter.copy_(tensor);
  return {};
}

// What other writers leave in and nobody needs.
bool is_ignorable(const std::string& name, const ModelConfig& config) {
  return name.ends_with("rotary_emb.inv_freq") ||
         (config.tied_embeddings && name == "lm_head.weight");
}

}  // namespace

Transformer Transformer::initialise(const ModelConfig& config, std::uint64_t seed) {
  const at::NoGradGuard no_gradients;
  Transformer model(config);
  const double deviation = 0.02;
  const double residual = deviation / std::sqrt(2.0 * static_cast<double>(config.layers));
  for (auto& [name, parameter] : model.parameters_) {
    if (parameter.dim() == 1) continue;  // gains start at 1
    fill_normal(seed, name, is_residual_projection(name) ? residual : deviation, parameter);
  }
  return model;
}

Result<Transformer> Transformer::load(const std::filesystem::path& folder) {
  PREFGRID_ASSIGN(const ModelConfig config, load_model_config(folder));
  const std::filesystem::path file = folder / "model.safetensors";
  PREFGRID_ASSIGN(const TensorMap tensors, load_safetensors(file));
  // A lying config must not make us allocate more than the file could fill.
  const auto embedding = tensors.find("model.embed_tokens.weight");
  if (embedding == tensors.end()) {
    return invalid_input(file.string() + ": lacks the tensor model.embed_tokens.weight");
  }
  const std::vector<std::int64_t> expected{config.vocab_size, config.d_model};
  if (embedding->second.sizes() != at::IntArrayRef(expected)) {
    return invalid_input(file.string() + ": tensor model.embed_tokens.weight has shape " +
                         shape_text(embedding->second.sizes()) + ", config.json asks for " +
                         shape_text(expected));
  }
  const at::NoGradGuard no_gradients;
  try {
    Transformer model(config);
    for (const auto& [name, parameter] : model.parameters_) {
      PREFGRID_TRY(copy_weight(file.string(), name, tensors, parameter));
    }
    for (const auto& [name, tensor] : tensors) {
      if (!model.parameters_.contains(name) && !is_ignorable(name, config)) {
        return invalid_input(file.string() + ": tensor " + quoted(name, 100) +
                             " has no place in the model that config.json describes");
      }
    }
    return model;
  } catch (const c10::Error& error) {
    return Error{ErrorCode::out_of_memory,
                 file.string() + ": " + std::string(error.what_without_backtrace())};
  }
}

Result<void> Transformer::save(const std::filesystem::path& folder) const {
  PREFGRID_TRY(save_model_config(config_, folder));
  return save_safetensors(parameters_, folder / "model.safetensors");
}

}  // namespace prefgrid
