// The frozen features φ of both sides of every pair of a dataset: an embed job's artefact
// `features.safetensors`, dense (hidden states) or sparse (bags of words).
//   dense   chosen, rejected [pairs, F] fp32
//   sparse  dimensions [1] int64; {chosen,rejected}_{offsets [pairs + 1] int64, columns int32,
//           values fp32}
//   both    scale [1] fp64: times it, mean ‖φ(x,y⁺) − φ(x,y⁻)‖² = F on the seen users' train pairs
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <variant>
#include <vector>

#include "common/result.h"
#include "experiments/datasets/dataset.h"
#include "experiments/methods/sparse_rows.h"
#include "worker/decoding/reward.h"
#include "worker/nn/torch.h"

namespace prefgrid {

using FeatureRows = std::variant<at::Tensor, SparseRows>;  // [rows, F], fp32

std::int64_t row_count(const FeatureRows& rows);
std::int64_t dimensions(const FeatureRows& rows);
// r = head · φ for every row. Errors: the head is of another width.
Result<std::vector<float>> linear_rewards(const FeatureRows& rows, const LinearHead& head);

// The same for one row, in double.
double row_reward(const FeatureRows& rows, std::int64_t row, const LinearHead& head);

struct Features {
  FeatureRows chosen;    // in the order of Dataset::pairs
  FeatureRows rejected;  // the same
  double scale = 1;
};

// Sets `scale` from the pairs given. Of no pairs, or where all differences are zero: 1.
Features scaled(FeatureRows chosen, FeatureRows rejected, std::span<const std::uint32_t> pairs);

Result<void> save_features(const Features& features, const std::filesystem::path& file);
// Errors name the file: damage, or a number of pairs other than `pairs`.
Result<Features> load_features(const std::filesystem::path& file, std::int64_t pairs);

// The scaled differences d of some pairs: [n, F], dense or sparse.
class DifferenceMatrix {
 public:
  DifferenceMatrix(const Features& features, std::span<const std::uint32_t> pairs);
  explicit DifferenceMatrix(FeatureRows rows) : rows_(std::move(rows)) {}

  std::int64_t rows() const { return row_count(rows_); }
  std::int64_t dimensions() const { return prefgrid::dimensions(rows_); }
  // d·right: [n, F]·[F, B] -> [n, B]
  at::Tensor times(const at::Tensor& right) const;
  // dᵀ·right: [F, n]·[n, B] -> [F, B]
  at::Tensor transposed_times(const at::Tensor& right) const;

 private:
  FeatureRows rows_;
};

// Pairs of the seen users that belong to `split`, in the dataset's order.
std::vector<std::uint32_t> seen_pairs(const Dataset& dataset, Split split);

}  // namespace prefgrid
