#include "worker/nn/transformer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "common/random.h"
#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/nn/reference_model.h"

namespace prefgrid {
namespace {

ModelConfig tiny_config() {
  ModelConfig config;
  config.vocab_size = 23;
  config.d_model = 20;  // no multiple of the vector lanes
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 6;
  config.d_ff = 27;
  config.max_tokens = 160;
  return config;
}

// Larger weights than at the start of training, so that every term matters.
Transformer tiny_model(const ModelConfig& config = tiny_config()) {
  Transformer model = Transformer::initialise(config, test_seed());
  RandomStream random(test_seed(), "tiny model");
  const at::NoGradGuard guard;
  for (const auto& [name, parameter] : model.parameters()) {
    float* value = parameter.data_ptr<float>();
    for (std::int64_t i = 0; i < parameter.numel(); ++i) {
      value[i] = parameter.dim() == 1 ? static_cast<float>(0.5 + random.uniform())
                                      : static_cast<float>(0.3 * random.normal());
    }
  }
  return model;
}

std::vector<std::int64_t> random_tokens(std::int64_t count, const std::string& purpose,
                                        std::int64_t vocab_size = 23) {
  RandomStream random(test_seed(), purpose);
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int64_t>(random.below(vocab_size)));
  }
  return tokens;
}

at::Tensor row_tensor(const std::vector<std::int64_t>& values) {
  return at::tensor(values, at::kLong).view({1, -1});
}
at::Tensor count_from(std::int64_t first, std::int64_t count) {
  return at::arange(first, first + count, at::kLong).view({1, -1});
}

double largest_difference(const at::Tensor& ours, const std::vector<std::vector<double>>& theirs) {
  const at::Tensor flat = ours.detach().reshape({-1, ours.size(-1)});
  REQUIRE(flat.size(0) == static_cast<std::int64_t>(theirs.size()));
  double largest = 0;
  for (std::size_t row = 0; row < theirs.size(); ++row) {
    for (std::size_t i = 0; i < theirs[row].size(); ++i) {
      const float value =
          flat[static_cast<std::int64_t>(row)][static_cast<std::int64_t>(i)].item<float>();
      largest = std::max(largest, std::abs(static_cast<double>(value) - theirs[row][i]));
    }
  }
  return largest;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous();
  const at::Tensor y = b.contiguous();
  return x.sizes() == y.sizes() && std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

}  // namespace

TEST_CASE("logits of a whole row equal a naive implementation's") {
  for (const bool tied : {true, false}) {
    ModelConfig config = tiny_config();
    config.tied_embeddings = tied;
    const Transformer model = tiny_model(config);
    const auto tokens = random_tokens(150, "row");  // more than two attention tiles
    const auto expected = reference_logits(model, causal_input(tokens));
    const at::Tensor ours = model.logits(model.train_forward(row_tensor(tokens)));
    CHECK(largest_difference(ours, expected) < 2e-4);
  }
}

TEST_CASE("rows over a cache equal the whole row, whatever the chunks") {
  const Transformer model = tiny_model();
  const auto tokens = random_tokens(40, "chunks");
  const at::Tensor whole = model.train_forward(row_tensor(tokens)).detach();
  for (const std::vector<std::int64_t>& chunks :
       {std::vector<std::int64_t>{40}, {1, 1, 1, 37}, {13, 5, 22}, {39, 1}}) {
    KvCache cache = model.make_cache(1, 40);
    std::vector<at::Tensor> parts;
    for (const std::int64_t count : chunks) {
      const std::int64_t first = cache.length;
      const at::Tensor piece = row_tensor(tokens).narrow(1, first, count);
      parts.push_back(model.extend(piece, count_from(first, count), {}, cache, count));
    }
    CHECK(cache.length == 40);
    CHECK((at::cat(parts, 1) - whole).abs().max().item<float>() < 2e-5);
  }
}

TEST_CASE("candidates as leaves of a tree equal one pass each") {
  // Scenario: five rows in the cache; three candidates, each after the prefix, none sees another.
  const Transformer model = tiny_model();
  const auto prefix = random_tokens(5, "prefix");
  const std::vector<std::int64_t> leaves{3, 7, 11};
  KvCache cache = model.make_cache(1, 6);
  model.extend(row_tensor(prefix), count_from(0, 5), {}, cache, 5);
  at::Tensor mask = at::full({1, 3, 8}, -INFINITY);
  mask.narrow(2, 0, 5).zero_();
  for (int i = 0; i < 3; ++i) mask[0][i][5 + i] = 0;
  const at::Tensor hidden =
      model.extend(row_tensor(leaves), at::full({1, 3}, 5, at::kLong), mask, cache, 0);
  CHECK(cache.length == 5);
  for (std::int64_t i = 0; i < 3; ++i) {
    auto path = prefix;
    path.push_back(leaves[static_cast<std::size_t>(i)]);
    const auto expected = reference_hidden(model, causal_input(path));
    CHECK(largest_difference(hidden[0][i], {expected.back()}) < 2e-5);
  }
  // Keeping the first rows only: the next row sees the prefix and the first candidate.
  model.extend(row_tensor(leaves), at::full({1, 3}, 5, at::kLong), mask, cache, 1);
  REQUIRE(cache.length == 6);
  const at::Tensor next = model.extend(row_tensor({9}), count_from(6, 1), {}, cache, 0);
  auto path = prefix;
  path.insert(path.end(), {3, 9});
  CHECK(largest_difference(next, {reference_hidden(model, causal_input(path)).back()}) < 2e-5);
}

TEST_CASE("packed documents equal separate ones") {
  const Transformer model = tiny_model();
  const std::vector<std::int64_t> lengths{1, 30, 64, 7, 48};
  const auto tokens = random_tokens(150, "packed");
  std::vector<std::int64_t> segments;
  for (std::size_t document = 0; document < lengths.size(); ++document) {
    segments.insert(segments.end(), static_cast<std::size_t>(lengths[document]),
                    static_cast<std::int64_t>(document % 2));  // equal numbers, but not adjacent
  }
  const at::Tensor packed = model.train_forward(row_tensor(tokens), row_tensor(segments));
  std::int64_t first = 0;
  for (const std::int64_t length : lengths) {
    const at::Tensor alone = model.train_forward(row_tensor(tokens).narrow(1, first, length));
    CHECK((packed.narrow(1, first, length) - alone).abs().max().item<float>() < 2e-5);
    first += length;
  }
}

TEST_CASE("branches over one trunk equal separate texts") {
  // Scenario: two packed texts, trunks of 70 and 1 rows, with branches of 5 and 9, 80 and 3 rows.
  const Transformer model = tiny_model();
  struct Text {
    std::int64_t trunk;
    std::vector<std::int64_t> branches;
  };
  const std::vector<Text> texts{{70, {5, 9}}, {1, {80, 3}}};
  const auto tokens = random_tokens(168, "branches");
  std::vector<std::int64_t> segments;
  std::vector<std::int64_t> branches;
  for (std::size_t text = 0; text < texts.size(); ++text) {
    const auto append = [&](std::int64_t rows, std::int64_t branch) {
      segments.insert(segments.end(), static_cast<std::size_t>(rows),
                      static_cast<std::int64_t>(text));
      branches.insert(branches.end(), static_cast<std::size_t>(rows), branch);
    };
    append(texts[text].trunk, 0);
    for (std::size_t i = 0; i < texts[text].branches.size(); ++i) {
      append(texts[text].branches[i], static_cast<std::int64_t>(i) + 1);
    }
  }
  const at::Tensor all = row_tensor(tokens);
  const at::Tensor packed =
      model.train_forward(all, row_tensor(segments), row_tensor(branches)).detach();
  std::int64_t first = 0;
  for (const Text& text : texts) {
    std::int64_t branch = first + text.trunk;
    for (const std::int64_t length : text.branches) {
      const at::Tensor alone =
          model
              .train_forward(
                  at::cat({all.narrow(1, first, text.trunk), all.narrow(1, branch, length)}, 1))
              .detach();
      CHECK((packed.narrow(1, first, text.trunk) - alone.narrow(1, 0, text.trunk))
                .abs()
                .max()
                .item<float>() < 2e-5);
      CHECK((packed.narrow(1, branch, length) - alone.narrow(1, text.trunk, length))
                .abs()
                .max()
                .item<float>() < 2e-5);
      branch += length;
    }
    first = branch;
  }
}

TEST_CASE("a row's bits do not depend on what its neighbours in the batch hold") {
  const Transformer model = tiny_model();
  const at::Tensor mine = row_tensor(random_tokens(70, "mine"));
  const auto beside = [&](const std::string& purpose) {
    return at::cat({row_tensor(random_tokens(70, purpose + " a")), mine,
                    row_tensor(random_tokens(70, purpose + " b"))});
  };
  const at::Tensor one = beside("one");
  const at::Tensor two = beside("two");
  REQUIRE(!same_bits(one, two));
  const at::NoGradGuard guard;
  CHECK(same_bits(model.train_forward(one)[1], model.train_forward(two)[1]));
  const auto extended = [&](const at::Tensor& tokens) {
    KvCache cache = model.make_cache(3, 70);
    const at::Tensor positions = count_from(0, 69).expand({3, 69});
    model.extend(tokens.narrow(1, 0, 69), positions, {}, cache, 69);
    return model.extend(tokens.narrow(1, 69, 1), at::full({3, 1}, 69, at::kLong), {}, cache, 1);
  };
  CHECK(same_bits(extended(one)[1], extended(two)[1]));
}

TEST_CASE("gradients of every parameter equal finite differences of the naive implementation") {
  // Scenario: loss = Σ c · hidden over a row of three packed documents longer than one tile, the
  // middle one with two branches; the slope along a random direction, parameter by parameter, in
  // double.
  const ModelConfig config = tiny_config();
  Transformer model = tiny_model(config);
  const auto tokens = random_tokens(70, "gradient");
  ReferenceInput input;
  std::vector<std::int64_t> segments;
  std::vector<std::int64_t> branches;
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    const std::size_t first = at < 3 ? 0 : at < 66 ? 3 : 66;
    const std::size_t branch = at >= 40 && at < 66 ? (at < 55 ? 40 : 55) : 0;
    std::vector<std::size_t> seen;
    for (std::size_t row = first; row <= at; ++row) {
      if (branch == 0 || row < 40 || row >= branch) seen.push_back(row);
    }
    input.positions.push_back(static_cast<std::int64_t>(seen.size()) - 1);
    input.visible.push_back(std::move(seen));
    segments.push_back(static_cast<std::int64_t>(first));
    branches.push_back(static_cast<std::int64_t>(branch));
  }
  input.tokens = tokens;
  RandomStream random(test_seed(), "directions");
  std::vector<float> coefficients;
  for (std::int64_t i = 0; i < 70 * config.d_model; ++i) {
    coefficients.push_back(static_cast<float>(random.normal()));
  }
  model.set_requires_grad(true);
  const at::Tensor hidden =
      model.train_forward(row_tensor(tokens), row_tensor(segments), row_tensor(branches));
  (hidden.view({-1}) * at::tensor(coefficients)).sum().backward();
  const auto reference_loss = [&] {
    double loss = 0;
    const auto rows = reference_hidden(model, input);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::size_t i = 0; i < rows[row].size(); ++i) {
        loss += rows[row][i] * static_cast<double>(coefficients[row * rows[row].size() + i]);
      }
    }
    return loss;
  };
  const at::NoGradGuard guard;
  for (const auto& [name, parameter] : model.parameters()) {
    CAPTURE(name);
    std::vector<float> direction;
    for (std::int64_t i = 0; i < parameter.numel(); ++i) {
      direction.push_back(static_cast<float>(random.normal()));
    }
    const at::Tensor along = at::tensor(direction).view(parameter.sizes());
    const at::Tensor start = parameter.clone();
    const double step = 1.0 / 2048;  // the weights stay fp32: round-off and curvature in balance
    parameter.copy_(start + along * step);
    const at::Tensor up = parameter - start;
    const double above = reference_loss();
    parameter.copy_(start - along * step);
    const at::Tensor way = up - (parameter - start);
    const double below = reference_loss();
    parameter.copy_(start);
    const double expected = above - below;
    const double ours =
        (parameter.grad().to(at::kDouble) * way.to(at::kDouble)).sum().item<double>();
    CHECK(ours == doctest::Approx(expected).epsilon(3e-3));
    CHECK(std::abs(expected) > 1e-5);
  }
}

TEST_CASE(
    "fresh weights depend on the seed and the tensor's name alone, and have the stated spread") {
  ModelConfig config = tiny_config();
  config.d_model = 64;
  config.d_ff = 200;
  const Transformer one = Transformer::initialise(config, 5);
  config.layers = 1;  // another model, the same tensor
  const Transformer two = Transformer::initialise(config, 5);
  const Transformer three = Transformer::initialise(config, 6);
  const std::string name = "model.layers.0.mlp.gate_proj.weight";
  const at::Tensor& weight = one.parameters().at(name);
  CHECK(same_bits(weight, two.parameters().at(name)));
  CHECK(!same_bits(weight, three.parameters().at(name)));
  CHECK(weight.std().item<float>() == doctest::Approx(0.02).epsilon(0.05));
  CHECK(std::abs(weight.mean().item<float>()) < 0.001);
  const at::Tensor& residual = one.parameters().at("model.layers.1.mlp.down_proj.weight");
  CHECK(residual.std().item<float>() == doctest::Approx(0.01).epsilon(0.05));  // 0.02 / sqrt(2·2)
}

TEST_CASE("a saved model folder loads to the same bits, and damage is named") {
  const TempDir dir;
  const Transformer model = tiny_model();
  REQUIRE(model.save(dir.path()).ok());
  auto loaded = Transformer::load(dir.path());
  REQUIRE(loaded.ok());
  CHECK(loaded->config() == model.config());
  for (const auto& [name, parameter] : model.parameters()) {
    CHECK(same_bits(parameter, loaded->parameters().at(name)));
  }
  const auto refusal = [&](TensorMap tensors) {
    REQUIRE(save_safetensors(tensors, dir.path() / "model.safetensors").ok());
    auto result = Transformer::load(dir.path());
    REQUIRE(!result.ok());
    return result.error().message;
  };
  TensorMap missing = model.parameters();
  missing.erase("model.layers.1.mlp.up_proj.weight");
  CHECK(refusal(missing).find("model.layers.1.mlp.up_proj.weight") != std::string::npos);
  TensorMap wrong_shape = model.parameters();
  wrong_shape["model.norm.weight"] = at::ones({21});
  CHECK(refusal(wrong_shape).find("model.norm.weight has shape [21]") != std::string::npos);
  TensorMap surplus = model.parameters();
  surplus["model.layers.2.mlp.up_proj.weight"] = at::ones({1});
  CHECK(refusal(surplus).find("model.layers.2") != std::string::npos);
  TensorMap integers = model.parameters();
  integers["model.norm.weight"] = at::ones({20}, at::kLong);
  CHECK(refusal(integers).find("model.norm.weight has dtype Long") != std::string::npos);
}

}  // namespace prefgrid
