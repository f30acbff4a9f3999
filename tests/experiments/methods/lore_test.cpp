#include "experiments/methods/lore.h"
//
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

#include <cmath>

#include "common/random.h"
#include "experiments/methods/adam.h"
#include "tests/support/seed.h"

namespace prefgrid {
namespace {

at::Tensor normal(at::IntArrayRef shape, std::string_view purpose) {
  at::Tensor tensor = at::empty(shape);
  RandomStream stream(test_seed(), purpose);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.data_ptr<float>()[i] = static_cast<float>(stream.normal());
  }
  return tensor;
}

// The same numbers, compressed by row.
SparseRows compressed(const at::Tensor& dense) {
  SparseRows rows;
  rows.dimensions = dense.size(1);
  for (std::int64_t i = 0; i < dense.size(0); ++i) {
    for (std::int64_t j = 0; j < dense.size(1); ++j) {
      const float value = dense[i][j].item<float>();
      if (value == 0) continue;
      rows.columns.push_back(static_cast<std::int32_t>(j));
      rows.values.push_back(value);
    }
    rows.offsets.push_back(static_cast<std::int64_t>(rows.columns.size()));
  }
  return rows;
}

const auto quiet = [](std::uint64_t, double) {};

DOCTEST_TEST_CASE("LoRe's gradient equals finite differences of its loss") {
  LorePairs pairs{
      DifferenceMatrix(FeatureRows(normal({7, 4}, "d") * 30)), {0, 0, 0, 1, 1, 2, 2}, 3};
  LoreParameters at_point{normal({4, 3}, "V"), normal({3, 3}, "W")};
  const LoreGradient gradient = lore_gradient(pairs, at_point);
  const auto check = [&](at::Tensor parameter, const at::Tensor& analytic) {
    for (std::int64_t i = 0; i < parameter.numel(); ++i) {
      float& value = parameter.data_ptr<float>()[i];
      const float before = value;
      const float step = 1e-2F;
      value = before + step;
      const double above = lore_gradient(pairs, at_point).loss_nats;
      value = before - step;
      const double below = lore_gradient(pairs, at_point).loss_nats;
      value = before;
      const double numeric = (above - below) / (2 * static_cast<double>(step));
      DOCTEST_CHECK(analytic.data_ptr<float>()[i] ==
                    doctest::Approx(numeric).epsilon(1e-2).scale(1e-2));
    }
  };
  check(at_point.directions, gradient.directions);
  check(at_point.logits, gradient.logits);
}

DOCTEST_TEST_CASE("sparse and dense features give the same gradient") {
  at::Tensor dense = normal({6, 5}, "sparse");
  dense = at::where(dense > 0, dense, at::zeros_like(dense)).contiguous();
  const std::vector<std::int64_t> users = {0, 1, 0, 1, 0, 1};
  const LorePairs with_dense{DifferenceMatrix(FeatureRows(dense)), users, 2};
  const LorePairs with_sparse{DifferenceMatrix(FeatureRows(compressed(dense))), users, 2};
  const LoreParameters at_point{normal({5, 2}, "V"), normal({2, 2}, "W")};
  const LoreGradient left = lore_gradient(with_dense, at_point);
  const LoreGradient right = lore_gradient(with_sparse, at_point);
  DOCTEST_CHECK(left.loss_nats == doctest::Approx(right.loss_nats));
  DOCTEST_CHECK(at::allclose(left.directions, right.directions, 1e-4, 1e-7));
  DOCTEST_CHECK(at::allclose(left.logits, right.logits, 1e-4, 1e-7));
}

DOCTEST_TEST_CASE("the loss is the mean over users: a user with many pairs counts once") {
  const at::Tensor d = normal({4, 3}, "mean");
  const LoreParameters at_point{normal({3, 2}, "V"), normal({2, 2}, "W")};
  const auto one = [&](std::int64_t row, std::int64_t user) {
    return lore_fit({DifferenceMatrix(FeatureRows(d.narrow(0, row, 1).contiguous())), {user}, 2},
                    at_point)
        .loss_nats;
  };
  const LorePairs pairs{DifferenceMatrix(FeatureRows(d)), {0, 0, 0, 1}, 2};
  const double expected = ((one(0, 0) + one(1, 0) + one(2, 0)) / 3 + one(3, 1)) / 2;
  DOCTEST_CHECK(lore_gradient(pairs, at_point).loss_nats == doctest::Approx(expected));
  DOCTEST_CHECK(lore_fit(pairs, at_point).loss_nats == doctest::Approx(expected));
}

// Two tastes that contradict each other: no user-blind reward gets above one half.
struct TwoTastes {
  LorePairs train;
  LorePairs valid;
};
TwoTastes two_tastes() {
  const auto make = [](std::int64_t n, std::string_view purpose) {
    at::Tensor d = normal({n, 6}, purpose) * 10;
    std::vector<std::int64_t> users;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t user = i % 4;
      users.push_back(user);
      float* row = d.data_ptr<float>() + i * 6;
      const float wanted = user < 2 ? std::abs(row[0]) : -std::abs(row[0]);
      row[0] = 3 * wanted;
    }
    return LorePairs{DifferenceMatrix(FeatureRows(d)), users, 4};
  };
  return {make(400, "two/train"), make(200, "two/valid")};
}

DOCTEST_TEST_CASE("two directions serve opposite tastes, one cannot") {
  const TwoTastes data = two_tastes();
  LoreOptions options;
  options.steps = 200;
  options.rank = 2;
  const auto two = train_lore(data.train, data.valid, options, 1, quiet);
  options.rank = 1;
  const auto one = train_lore(data.train, data.valid, options, 1, quiet);
  DOCTEST_REQUIRE((two.ok() && one.ok()));
  DOCTEST_CHECK(two->valid.accuracy > 0.9);
  DOCTEST_CHECK(one->valid.accuracy < 0.6);
}

DOCTEST_TEST_CASE("the step kept has the lowest valid loss of the curve; `last` keeps the last") {
  const TwoTastes data = two_tastes();
  LoreOptions options;
  options.steps = 60;
  options.rank = 2;
  const auto chosen = train_lore(data.train, data.valid, options, 3, quiet);
  DOCTEST_REQUIRE(chosen.ok());
  double lowest = chosen->valid.loss_nats;
  for (const CurvePoint& point : chosen->curve) {
    if (point.series == "valid_loss_nats") lowest = std::min(lowest, point.value);
  }
  DOCTEST_CHECK(lowest == chosen->valid.loss_nats);
  DOCTEST_CHECK(lore_fit(data.valid, chosen->parameters).loss_nats == chosen->valid.loss_nats);
  options.choose_by_valid = false;
  const auto last = train_lore(data.train, data.valid, options, 3, quiet);
  DOCTEST_REQUIRE(last.ok());
  DOCTEST_CHECK(last->chosen_step == 60);
}

DOCTEST_TEST_CASE("the same seed gives the same bits, another seed others") {
  const TwoTastes data = two_tastes();
  LoreOptions options;
  options.steps = 20;
  const auto first = train_lore(data.train, data.valid, options, 5, quiet);
  const auto again = train_lore(data.train, data.valid, options, 5, quiet);
  const auto other = train_lore(data.train, data.valid, options, 6, quiet);
  DOCTEST_REQUIRE((first.ok() && again.ok() && other.ok()));
  DOCTEST_CHECK(at::equal(first->parameters.directions, again->parameters.directions));
  DOCTEST_CHECK_FALSE(at::equal(first->parameters.directions, other->parameters.directions));
}

DOCTEST_TEST_CASE("a new user's weights move to the direction that explains its pairs") {
  const at::Tensor directions = at::eye(3) * 100;
  at::Tensor d = normal({30, 3}, "adapt");
  d.select(1, 1).abs_();
  const LoreAdaptation fit = adapt_lore(DifferenceMatrix(FeatureRows(d)), directions, 0.1, 500);
  DOCTEST_REQUIRE(fit.weights.size() == 3);
  DOCTEST_CHECK(fit.weights[1] > 0.9F);
  DOCTEST_CHECK(fit.weights[0] + fit.weights[1] + fit.weights[2] == doctest::Approx(1.0));
  DOCTEST_CHECK(fit.loss_nats < std::log(2.0));
}

DOCTEST_TEST_CASE("a new user without pairs gets the uniform mixture") {
  const DifferenceMatrix none{FeatureRows(at::empty({0, 3}))};
  const LoreAdaptation fit = adapt_lore(none, at::eye(3), 0.1, 500);
  for (const float weight : fit.weights) DOCTEST_CHECK(weight == doctest::Approx(1.0 / 3));
}

DOCTEST_TEST_CASE("the head is V w scaled and divided by 100, for unscaled features") {
  const at::Tensor directions = at::tensor({1.0F, 2.0F, 3.0F, 4.0F}).view({2, 2});
  const LinearHead head = lore_head(directions, std::vector<float>{0.25F, 0.75F}, 10);
  DOCTEST_CHECK(head.direction[0] == doctest::Approx(0.175));
  DOCTEST_CHECK(head.direction[1] == doctest::Approx(0.375));
}

DOCTEST_TEST_CASE("Adam's first step has the learning rate's size, and it finds a minimum") {
  Adam<double> adam(1, 0.1);
  std::vector<double> x = {3};
  const auto descend = [&] { adam.step(x, std::vector<double>{2 * (x[0] - 1)}); };
  descend();
  DOCTEST_CHECK(x[0] == doctest::Approx(2.9));
  for (int i = 0; i < 500; ++i) descend();
  DOCTEST_CHECK(x[0] == doctest::Approx(1).epsilon(1e-3));
}

}  // namespace
}  // namespace prefgrid
