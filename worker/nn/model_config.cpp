#include "worker/nn/model_config.h"

#include <cmath>

#include "common/files.h"
#include "common/text.h"
#include "worker/nn/json_file.h"

namespace prefgrid {
namespace {

constexpr std::size_t max_config_bytes = 1 << 20;

// Reads typed fields of one object; errors name file and field.
class FieldReader {
 public:
  FieldReader(const nlohmann::json& object, std::string file)
      : object_(object), file_(std::move(file)) {}

  Error wrong(const std::string& field, const std::string& problem) const {
    return invalid_input(file_ + ": field \"" + field + "\": " + problem);
  }
  bool has(const std::string& field) const {
    return object_.contains(field) && !object_.at(field).is_null();
  }
  Result<std::int64_t> integer(const std::string& field, std::int64_t maximum) const {
    if (!has(field)) return wrong(field, "is missing");
    const nlohmann::json& value = object_.at(field);
    if (!value.is_number_integer()) return wrong(field, "must be an integer, is " + show(value));
    const bool fits = value.is_number_unsigned() &&
                      value.get<std::uint64_t>() <= static_cast<std::uint64_t>(maximum);
    if (!fits || value.get<std::uint64_t>() == 0) {
      return wrong(field, "must lie in 1 .. " + std::to_string(maximum) + ", is " + show(value));
    }
    return value.get<std::int64_t>();
  }
  Result<std::int64_t> integer_or(const std::string& field, std::int64_t maximum,
                                  std::int64_t otherwise) const {
    if (!has(field)) return otherwise;
    return integer(field, maximum);
  }
  Result<double> positive_or(const std::string& field, double otherwise) const {
    if (!has(field)) return otherwise;
    const nlohmann::json& value = object_.at(field);
    if (!value.is_number()) return wrong(field, "must be a number, is " + show(value));
    const double number = value.get<double>();
    if (!(number > 0) || !std::isfinite(number)) {
      return wrong(field, "must be positive, is " + show(value));
    }
    return number;
  }
  Result<bool> boolean_or(const std::string& field, bool otherwise) const {
    if (!has(field)) return otherwise;
    const nlohmann::json& value = object_.at(field);
    if (!value.is_boolean()) return wrong(field, "must be true or false, is " + show(value));
    return value.get<bool>();
  }
  // What prefgrid computes is one value only; another one is refused, absence is fine.
  Result<void> only(const std::string& field, const nlohmann::json& supported) const {
    if (!has(field) || object_.at(field) == supported) return {};
    return wrong(field, "only " + show(supported) + " is supported, is " + show(object_.at(field)));
  }
  static std::string show(const nlohmann::json& value) {
    return quoted(value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), 60);
  }

 private:
  const nlohmann::json& object_;
  std::string file_;
};

Result<std::string> read_architecture(const nlohmann::json& json, const FieldReader& reader) {
  if (!reader.has("architectures")) return reader.wrong("architectures", "is missing");
  const nlohmann::json& list = json.at("architectures");
  if (!list.is_array() || list.size() != 1 || !list[0].is_string()) {
    return reader.wrong("architectures", "must be a list of one name");
  }
  const std::string name = list[0].get<std::string>();
  if (name != "LlamaForCausalLM") {
    return reader.wrong("architectures", "LlamaForCausalLM is supported, not " + quoted(name, 60));
  }
  return name;
}

// rope_theta stands at the top, or (newer writers) in rope_parameters beside rope_type.
Result<double> read_rope_theta(const nlohmann::json& json, const FieldReader& reader,
                               const std::string& file) {
  PREFGRID_TRY(reader.only("rope_scaling", nullptr));
  if (!reader.has("rope_parameters")) return reader.positive_or("rope_theta", 10'000);
  const nlohmann::json& rope = json.at("rope_parameters");
  if (!rope.is_object()) return reader.wrong("rope_parameters", "must be an object");
  const FieldReader inner(rope, file + ": rope_parameters");
  PREFGRID_TRY(inner.only("rope_type", "default"));
  return inner.positive_or("rope_theta", 10'000);
}

Result<void> check_shape(const ModelConfig& config, const FieldReader& reader) {
  if (config.heads % config.kv_heads != 0) {
    return reader.wrong("num_key_value_heads", "must divide num_attention_heads (" +
                                                   std::to_string(config.heads) + "), is " +
                                                   std::to_string(config.kv_heads));
  }
  if (config.head_dim % 2 != 0) {
    return reader.wrong("head_dim", "must be even, is " + std::to_string(config.head_dim));
  }
  return {};
}

}  // namespace

Result<ModelConfig> load_model_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  PREFGRID_ASSIGN(const nlohmann::json json, read_json_object(file, max_config_bytes));
  const FieldReader reader(json, file.string());
  ModelConfig config;
  PREFGRID_ASSIGN(config.architecture, read_architecture(json, reader));
  PREFGRID_TRY(reader.only("hidden_act", "silu"));
  PREFGRID_TRY(reader.only("attention_bias", false));
  PREFGRID_TRY(reader.only("mlp_bias", false));
  PREFGRID_TRY(reader.only("quantization_config", nullptr));
  PREFGRID_ASSIGN(config.vocab_size, reader.integer("vocab_size", 1 << 24));
  PREFGRID_ASSIGN(config.d_model, reader.integer("hidden_size", 1 << 20));
  PREFGRID_ASSIGN(config.layers, reader.integer("num_hidden_layers", 4096));
  PREFGRID_ASSIGN(config.heads, reader.integer("num_attention_heads", 1 << 16));
  PREFGRID_ASSIGN(config.kv_heads, reader.integer_or("num_key_value_heads", 1 << 16, config.heads));
  PREFGRID_ASSIGN(config.d_ff, reader.integer("intermediate_size", 1 << 22));
  PREFGRID_ASSIGN(config.max_tokens, reader.integer("max_position_embeddings", 1 << 20));
  if (!reader.has("head_dim") && config.d_model % config.heads != 0) {
    return reader.wrong("num_attention_heads", "must divide hidden_size where head_dim is absent");
  }
  PREFGRID_ASSIGN(config.head_dim,
                  reader.integer_or("head_dim", 1 << 16, config.d_model / config.heads));
  PREFGRID_ASSIGN(config.rope_theta, read_rope_theta(json, reader, file.string()));
  PREFGRID_ASSIGN(config.rms_epsilon, reader.positive_or("rms_norm_eps", 1e-6));
  PREFGRID_ASSIGN(config.tied_embeddings, reader.boolean_or("tie_word_embeddings", false));
  PREFGRID_TRY(check_shape(config, reader));
  return config;
}

Result<void> save_model_config(const ModelConfig& config, const std::filesystem::path& folder) {
  const nlohmann::json json = {{"architectures", {config.architecture}},
                               {"model_type", "llama"},
                               {"hidden_act", "silu"},
                               {"attention_bias", false},
                               {"attention_dropout", 0.0},
                               {"mlp_bias", false},
                               {"bos_token_id", 0},
                               {"eos_token_id", 1},
                               {"initializer_range", 0.02},
                               {"torch_dtype", "float32"},
                               {"vocab_size", config.vocab_size},
                               {"hidden_size", config.d_model},
                               {"num_hidden_layers", config.layers},
                               {"num_attention_heads", config.heads},
                               {"num_key_value_heads", config.kv_heads},
                               {"head_dim", config.head_dim},
                               {"intermediate_size", config.d_ff},
                               {"max_position_embeddings", config.max_tokens},
                               {"rope_theta", config.rope_theta},
                               {"rope_scaling", nullptr},
                               {"rms_norm_eps", config.rms_epsilon},
                               {"tie_word_embeddings", config.tied_embeddings}};
  return write_file_atomic(folder / "config.json", json.dump(2) + "\n");
}

}  // namespace prefgrid
