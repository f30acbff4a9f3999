#include "experiments/methods/features.h"
//
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

#include <fstream>

#include "experiments/methods/text_reward.h"
#include "tests/support/temp_dir.h"
#include "worker/nn/safetensors.h"

namespace prefgrid {
namespace {

SparseRows rows_of(std::int64_t dimensions, const std::vector<std::vector<float>>& dense) {
  SparseRows rows;
  rows.dimensions = dimensions;
  for (const auto& row : dense) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] == 0) continue;
      rows.columns.push_back(static_cast<std::int32_t>(i));
      rows.values.push_back(row[i]);
    }
    rows.offsets.push_back(static_cast<std::int64_t>(rows.columns.size()));
  }
  return rows;
}

DOCTEST_TEST_CASE("the scale makes the mean squared difference of the given pairs equal F") {
  const at::Tensor chosen = at::tensor({1.0F, 2.0F, /**/ 0.0F, 5.0F, /**/ 9.0F, 9.0F}).view({3, 2});
  const at::Tensor rejected = at::zeros({3, 2});
  const std::vector<std::uint32_t> train = {0, 1};
  const Features features = scaled(chosen, rejected, train);
  const DifferenceMatrix d(features, train);
  const at::Tensor rows = d.times(at::eye(2));
  DOCTEST_CHECK(rows.square().sum().item<double>() / 2 == doctest::Approx(2.0));
}

DOCTEST_TEST_CASE("sparse differences cancel what both sides share") {
  Features features;
  features.chosen = rows_of(4, {{1, 2, 0, 3}});
  features.rejected = rows_of(4, {{1, 0, 5, 1}});
  features.scale = 2;
  const std::vector<std::uint32_t> pairs = {0};
  const at::Tensor row = DifferenceMatrix(features, pairs).times(at::eye(4))[0];
  DOCTEST_CHECK(at::equal(row, at::tensor({0.0F, 4.0F, -10.0F, 4.0F})));
  const at::Tensor back =
      DifferenceMatrix(features, pairs).transposed_times(at::ones({1, 1})).squeeze(1);
  DOCTEST_CHECK(at::equal(row, back));
}

DOCTEST_TEST_CASE("features come back from their file as they went, dense and sparse") {
  const TempDir folder;
  const auto file = folder.path() / "features.safetensors";
  Features dense = scaled(at::rand({3, 4}), at::rand({3, 4}), std::vector<std::uint32_t>{0, 2});
  DOCTEST_REQUIRE(save_features(dense, file).ok());
  auto loaded = load_features(file, 3);
  DOCTEST_REQUIRE(loaded.ok());
  DOCTEST_CHECK(
      at::equal(std::get<at::Tensor>(loaded->chosen), std::get<at::Tensor>(dense.chosen)));
  DOCTEST_CHECK(loaded->scale == dense.scale);

  Features sparse{rows_of(3, {{1, 0, 2}, {0, 0, 0}}), rows_of(3, {{0, 1, 0}, {3, 0, 0}}), 1.5};
  DOCTEST_REQUIRE(save_features(sparse, file).ok());
  loaded = load_features(file, 2);
  DOCTEST_REQUIRE(loaded.ok());
  const auto& chosen = std::get<SparseRows>(loaded->chosen);
  DOCTEST_CHECK(chosen.columns == std::get<SparseRows>(sparse.chosen).columns);
  DOCTEST_CHECK(chosen.offsets == std::get<SparseRows>(sparse.chosen).offsets);
  DOCTEST_CHECK(chosen.values == std::get<SparseRows>(sparse.chosen).values);
}

DOCTEST_TEST_CASE("features of another dataset, or damaged ones, are refused by name") {
  const TempDir folder;
  const auto file = folder.path() / "features.safetensors";
  Features sparse{rows_of(3, {{1, 0, 2}}), rows_of(3, {{0, 1, 0}}), 1};
  DOCTEST_REQUIRE(save_features(sparse, file).ok());
  DOCTEST_CHECK_FALSE(load_features(file, 7).ok());
  auto tensors = load_safetensors(file);
  DOCTEST_REQUIRE(tensors.ok());
  (*tensors)["chosen_columns"] = at::full({2}, 99, at::kInt);
  DOCTEST_REQUIRE(save_safetensors(*tensors, file).ok());
  const auto outside = load_features(file, 1);
  DOCTEST_REQUIRE_FALSE(outside.ok());
  DOCTEST_CHECK(outside.error().message.find("features.safetensors") != std::string::npos);
  (*tensors).erase("scale");
  DOCTEST_REQUIRE(save_safetensors(*tensors, file).ok());
  DOCTEST_CHECK_FALSE(load_features(file, 1).ok());
}

DOCTEST_TEST_CASE("a linear reward is the same for a row, for all rows, dense and sparse") {
  const SparseRows sparse = rows_of(3, {{1, 0, 2}, {0, 4, 0}});
  const at::Tensor dense = at::tensor({1.0F, 0.0F, 2.0F, 0.0F, 4.0F, 0.0F}).view({2, 3});
  const LinearHead head{{0.5F, -1, 3}};
  for (const FeatureRows& rows : {FeatureRows(sparse), FeatureRows(dense)}) {
    const auto rewards = linear_rewards(rows, head);
    DOCTEST_REQUIRE(rewards.ok());
    DOCTEST_CHECK((*rewards)[0] == doctest::Approx(6.5));
    DOCTEST_CHECK((*rewards)[1] == doctest::Approx(-4));
    DOCTEST_CHECK(row_reward(rows, 1, head) == doctest::Approx(-4));
  }
  DOCTEST_CHECK_FALSE(linear_rewards(sparse, LinearHead{{1, 2}}).ok());
}

}  // namespace
}  // namespace prefgrid
