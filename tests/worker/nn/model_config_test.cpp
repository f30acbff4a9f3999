#include "worker/nn/model_config.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/temp_dir.h"

namespace prefgrid {
namespace {

ModelConfig sample() {
  ModelConfig config;
  config.vocab_size = 1024;
  config.d_model = 96;
  config.layers = 4;
  config.heads = 6;
  config.kv_heads = 3;
  config.head_dim = 16;
  config.d_ff = 256;
  config.max_tokens = 512;
  config.rope_theta = 5e5;
  config.tied_embeddings = false;
  return config;
}

}  // namespace

TEST_CASE("a saved shape loads to the same one") {
  const TempDir dir;
  REQUIRE(save_model_config(sample(), dir.path()).ok());
  auto loaded = load_model_config(dir.path());
  REQUIRE(loaded.ok());
  CHECK(*loaded == sample());
}

TEST_CASE("a wrong field is refused by file and name") {
  const TempDir dir;
  REQUIRE(save_model_config(sample(), dir.path()).ok());
  std::ifstream in(dir.path() / "config.json");
  const nlohmann::json good = nlohmann::json::parse(in);
  const std::pair<const char*, nlohmann::json> wrong[] = {
      {"vocab_size", nullptr},
      {"vocab_size", -1},
      {"vocab_size", 0},
      {"vocab_size", "1024"},
      {"hidden_size", 96.0},
      {"num_hidden_layers", 1'000'000'000},
      {"num_key_value_heads", 4},
      {"head_dim", 15},
      {"rms_norm_eps", 0},
      {"rope_theta", "big"},
      {"tie_word_embeddings", 1},
      {"attention_bias", true},
      {"hidden_act", "gelu"},
      {"rope_scaling", {{"type", "linear"}, {"factor", 2}}},
      {"architectures", {"GPT2LMHeadModel"}},
      {"architectures", "LlamaForCausalLM"},
      {"max_position_embeddings", {1}}};
  for (const auto& [field, value] : wrong) {
    CAPTURE(field);
    nlohmann::json bad = good;
    bad[field] = value;
    dir.write("config.json", bad.dump());
    auto result = load_model_config(dir.path());
    REQUIRE(!result.ok());
    CHECK(result.error().message.find("config.json") != std::string::npos);
    CHECK(result.error().message.find(field) != std::string::npos);
  }
}

TEST_CASE("a config file that is cut, no object or says a key twice is refused") {
  const TempDir dir;
  REQUIRE(save_model_config(sample(), dir.path()).ok());
  std::ifstream in(dir.path() / "config.json");
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t size = 0; size + 2 < whole.size(); size += 7) {
    dir.write("config.json", whole.substr(0, size));
    CHECK(!load_model_config(dir.path()).ok());
  }
  for (const char* text : {"[]", "3", "null", "{\"a\":1,\"a\":2}", "\xff"}) {
    dir.write("config.json", text);
    CHECK(!load_model_config(dir.path()).ok());
  }
  CHECK(load_model_config(dir.path() / "absent").error().code == ErrorCode::not_found);
}

}  // namespace prefgrid
