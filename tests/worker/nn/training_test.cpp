#include "worker/nn/training.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/seed.h"
#include "worker/nn/pretrain.h"
#include "worker/nn/pretrain_rows.h"

namespace prefgrid {
namespace {

ModelConfig small_config() {
  ModelConfig config;
  config.vocab_size = 19;
  config.d_model = 16;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 8;
  config.d_ff = 24;
  config.max_tokens = 64;
  return config;
}

// A data set of one author with a habit: the completion turns the prompt's words round. All texts
// differ, else those that valid and test hold would be taken out of the corpus.
Dataset habit_dataset() {
  Dataset dataset;
  dataset.name = "habit";
  dataset.users.emplace_back().id = "u";
  const char* words[] = {"red", "green", "blue", "white", "black", "grey"};
  int id = 0;
  for (const char* first : words) {
    for (const char* second : words) {
      const Split split = id % 6 == 5 ? Split::test : id % 6 == 4 ? Split::valid : Split::train;
      dataset.completions.push_back({std::to_string(100 + id++), 0,
                                     std::string(first) + " and " + second,
                                     std::string(second) + " " + first + ".", split});
    }
  }
  return dataset;
}

}  // namespace

TEST_CASE("logits of a folder that transformers wrote equal those that it computed") {
  const auto folder = std::filesystem::path(PREFGRID_SOURCE_DIR) / "tests/vectors/nn_llama";
  auto model = Transformer::load(folder);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  std::ifstream in(folder / "logits.json");
  const nlohmann::json expected = nlohmann::json::parse(in);
  const auto tokens = expected.at("tokens").get<std::vector<std::int64_t>>();
  const at::NoGradGuard guard;
  const at::Tensor row = at::tensor(tokens, at::kLong).view({1, -1});
  const at::Tensor logits = model->logits(model->train_forward(row))[0];
  double largest = 0;
  for (std::int64_t t = 0; t < logits.size(0); ++t) {
    for (std::int64_t v = 0; v < logits.size(1); ++v) {
      const double theirs =
          expected.at("logits")[static_cast<std::size_t>(t)][static_cast<std::size_t>(v)]
              .get<double>();
      largest = std::max(largest, std::abs(logits[t][v].item<double>() - theirs));
    }
  }
  CHECK(largest < 5e-5);
}

TEST_CASE("the token loss and its gradients equal those of libtorch's own operations") {
  Transformer model = Transformer::initialise(small_config(), test_seed());
  model.set_requires_grad(true);
  const at::Tensor targets = at::tensor({3, 0, 18, 7, 5}, at::kLong);
  const at::Tensor weights = at::tensor({1.0F, 0.0F, 0.25F, 2.0F, 1.0F});
  const at::Tensor start = at::linspace(-2, 3, 80, at::kFloat).sin().view({5, 16});
  const at::Tensor ours_in = start.clone().set_requires_grad(true);
  const at::Tensor ours = token_loss(model, ours_in, targets, weights, 4.25);
  (ours * 3).backward();
  const at::Tensor ours_head = model.head().grad().clone();
  model.set_requires_grad(false);
  model.set_requires_grad(true);
  const at::Tensor theirs_in = start.clone().set_requires_grad(true);
  const at::Tensor logs = at::log_softmax(at::matmul(theirs_in, model.head().t()), 1);
  const at::Tensor chosen = logs.gather(1, targets.view({-1, 1})).view({-1});
  const at::Tensor theirs = -(chosen * weights).sum() / 4.25;
  (theirs * 3).backward();
  CHECK(ours.item<float>() == doctest::Approx(theirs.item<float>()).epsilon(1e-5));
  CHECK((ours_in.grad() - theirs_in.grad()).abs().max().item<float>() < 1e-6);
  CHECK((ours_head - model.head().grad()).abs().max().item<float>() < 1e-5);
}

TEST_CASE("AdamW follows its formula, decays matrices only and clips the global norm") {
  Transformer model = Transformer::initialise(small_config(), test_seed());
  model.set_requires_grad(true);
  AdamOptions options;
  options.weight_decay = 0.1;
  options.clip_norm = 1.0;
  AdamW optimiser(trained_parameters(model), options);
  const char* names[] = {"model.layers.0.mlp.up_proj.weight", "model.norm.weight",
                         "model.embed_tokens.weight"};
  // In double, one element each: gradients 30 and then -6 everywhere in these three tensors.
  double w[3], m[3] = {0, 0, 0}, v[3] = {0, 0, 0};
  double count = 0;
  for (int i = 0; i < 3; ++i) {
    w[i] = model.parameters().at(names[i]).view({-1})[4].item<double>();
    count += static_cast<double>(model.parameters().at(names[i]).numel());
  }
  int step = 0;
  for (const double gradient : {30.0, -6.0}) {
    ++step;
    for (const char* name : names) {
      at::Tensor parameter = model.parameters().at(name);
      parameter.mutable_grad() = at::full_like(parameter, gradient);
    }
    const double norm = optimiser.step(0.01);
    CHECK(norm == doctest::Approx(std::abs(gradient) * std::sqrt(count)).epsilon(1e-6));
    for (int i = 0; i < 3; ++i) {
      const double g = gradient / norm;
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      const double decay = i == 0 ? 0.1 : 0.0;
      w[i] = w[i] * (1 - 0.01 * decay) - 0.01 * (m[i] / (1 - std::pow(0.9, step))) /
                                             (std::sqrt(v[i] / (1 - std::pow(0.95, step))) + 1e-8);
      const double ours = model.parameters().at(names[i]).view({-1})[4].item<double>();
      CHECK(ours == doctest::Approx(w[i]).epsilon(1e-4));
    }
  }
  CHECK(optimiser.state().step == 2);
  // A gradient that is no number changes nothing.
  at::Tensor norm_gain = model.parameters().at("model.norm.weight");
  norm_gain.mutable_grad() = at::full_like(norm_gain, std::nan(""));
  const double before = norm_gain[4].item<double>();
  CHECK(std::isnan(optimiser.step(0.01)));
  CHECK(norm_gain[4].item<double>() == before);
  CHECK(optimiser.state().step == 2);
}

TEST_CASE("the schedule climbs, peaks at 1 and falls to its floor") {
  CHECK(cosine_schedule(0, 100, 0.1) == doctest::Approx(0.1));
  CHECK(cosine_schedule(9, 100, 0.1) == doctest::Approx(1.0));
  CHECK(cosine_schedule(54, 100, 0.1, 0.0) == doctest::Approx(0.5));
  CHECK(cosine_schedule(99, 100, 0.1, 0.05) == doctest::Approx(0.05));
  CHECK(cosine_schedule(0, 1, 0.0) == doctest::Approx(0.05));
}

TEST_CASE("packed rows hold every item whole, with its weights, and nothing between counts") {
  // Scenario: items of 4 and 5 predictions in rows of 12: the third starts a new row.
  const TokenItem four{{0, 10, 11, 12, 1}, 3};
  const TokenItem five{{0, 13, 14, 15, 16, 1}, 2};
  RowPacker packer({12, 0.5F});
  CHECK(packer.add(four, true));
  CHECK(packer.add(five, false));
  CHECK(packer.add(four, true));
  CHECK(!packer.add(TokenItem{std::vector<TokenId>(14, 3), 1}, true));
  const std::vector<TokenRow> rows = packer.finish();
  REQUIRE(rows.size() == 2);
  using Ints = std::vector<std::int64_t>;
  CHECK(rows[0].inputs == Ints{0, 10, 11, 12, 1, 0, 13, 14, 15, 16, 0, 0});
  CHECK(rows[0].targets == Ints{10, 11, 12, 1, 0, 13, 14, 15, 16, 1, 0, 0});
  CHECK(rows[0].segments == Ints{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1});
  CHECK(rows[0].weights == std::vector<float>{0.5F, 0.5F, 1, 1, 0, 0.5F, 1, 1, 1, 1, 0, 0});
  CHECK(rows[1].inputs == Ints{0, 10, 11, 12, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("a small model learns a habit, and the same job gives the same bits") {
  const Dataset dataset = habit_dataset();
  auto options = pretrain_options({{"layers", Value(1)},
                                   {"d_model", Value(32)},
                                   {"heads", Value(2)},
                                   {"kv_heads", Value(1)},
                                   {"d_ff", Value(64)},
                                   {"vocab_size", Value(300)},
                                   {"max_tokens", Value(64)},
                                   {"tokens", Value(25'600)},
                                   {"batch_tokens", Value(256)},
                                   {"learning_rate", Value(0.01)}});
  REQUIRE(options.ok());
  std::uint64_t steps = 0;
  const auto progress = [&](std::uint64_t step, std::uint64_t total, std::optional<double> loss) {
    CHECK(step == ++steps);
    CHECK(total == 100);
    CHECK(loss.has_value());
  };
  auto one = pretrain(dataset, *options, progress);
  REQUIRE_MESSAGE(one.ok(), one.error().message);
  CHECK(steps == 100);
  CHECK(one->test_loss_nats < one->unigram_loss_nats - 1);
  CHECK(one->curve.front().value > 3);
  CHECK(one->curve.back().series == "valid_loss_nats");
  auto two = pretrain(dataset, *options, {});
  REQUIRE(two.ok());
  for (const auto& [name, parameter] : one->model.parameters()) {
    const at::Tensor& other = two->model.parameters().at(name);
    CHECK(std::memcmp(parameter.data_ptr(), other.data_ptr(), parameter.nbytes()) == 0);
  }
}

TEST_CASE("options that do not fit together, or no text, are refused") {
  CHECK(!pretrain_options({{"heads", Value(5)}}).ok());
  CHECK(!pretrain_options({{"kv_heads", Value(2)}}).ok());
  auto options = pretrain_options({});
  REQUIRE(options.ok());
  CHECK(options->shape.head_dim * options->shape.heads == options->shape.d_model);
  Dataset empty;
  CHECK(!pretrain(empty, *options, {}).ok());
}

}  // namespace prefgrid
