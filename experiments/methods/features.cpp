#include "experiments/methods/features.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "worker/nn/safetensors.h"

namespace prefgrid {
namespace {

// Σ over the pairs of ‖φ(x,y⁺) − φ(x,y⁻)‖².
double sum_of_squares(const FeatureRows& chosen, const FeatureRows& rejected,
                      std::span<const std::uint32_t> pairs) {
  double total = 0;
  if (const auto* sparse = std::get_if<SparseRows>(&chosen)) {
    SparseRows difference;
    for (const std::uint32_t pair : pairs) {
      append_difference(difference, *sparse, std::get<SparseRows>(rejected), pair, 1);
    }
    for (const float value : difference.values) total += static_cast<double>(value) * value;
    return total;
  }
  const auto& left = std::get<at::Tensor>(chosen);
  const auto& right = std::get<at::Tensor>(rejected);
  for (const std::uint32_t pair : pairs) {
    const float* a = left.data_ptr<float>() + pair * left.size(1);
    const float* b = right.data_ptr<float>() + pair * right.size(1);
    for (std::int64_t i = 0; i < left.size(1); ++i) {
      total += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    }
  }
  return total;
}

template <class T>
at::Tensor vector_tensor(const std::vector<T>& values, at::ScalarType type) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, type);
  std::copy(values.begin(), values.end(), tensor.data_ptr<T>());
  return tensor;
}

Error damaged(const std::filesystem::path& file, const std::string& what) {
  return invalid_input(file.string() + ": " + what +
                       "; it was not made by this version's embed job");
}

Result<at::Tensor> tensor_of(const TensorMap& tensors, const std::string& name, at::ScalarType type,
                             std::int64_t dimensions, const std::filesystem::path& file) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return damaged(file, "tensor '" + name + "' is missing");
  if (found->second.scalar_type() != type || found->second.dim() != dimensions) {
    return damaged(file, "tensor '" + name + "' has another type or shape");
  }
  return found->second.contiguous();
}

template <class T>
std::vector<T> to_vector(const at::Tensor& tensor) {
  const T* data = tensor.data_ptr<T>();
  return {data, data + tensor.numel()};
}

Result<SparseRows> load_sparse(const TensorMap& tensors, const std::string& side,
                               std::int64_t dimensions, const std::filesystem::path& file) {
  PREFGRID_ASSIGN(const at::Tensor offsets,
                  tensor_of(tensors, side + "_offsets", at::kLong, 1, file));
  PREFGRID_ASSIGN(const at::Tensor columns,
                  tensor_of(tensors, side + "_columns", at::kInt, 1, file));
  PREFGRID_ASSIGN(const at::Tensor values,
                  tensor_of(tensors, side + "_values", at::kFloat, 1, file));
  SparseRows rows{dimensions, to_vector<std::int64_t>(offsets), to_vector<std::int32_t>(columns),
                  to_vector<float>(values)};
  const bool framed = !rows.offsets.empty() && rows.offsets.front() == 0 &&
                      rows.offsets.back() == columns.numel() &&
                      std::is_sorted(rows.offsets.begin(), rows.offsets.end()) &&
                      columns.numel() == values.numel();
  if (!framed) return damaged(file, "the offsets of '" + side + "' do not fit its entries");
  const auto outside = [&](std::int32_t column) { return column < 0 || column >= dimensions; };
  if (std::any_of(rows.columns.begin(), rows.columns.end(), outside)) {
    return damaged(file, "a column of '" + side + "' lies outside of the dimensions");
  }
  return rows;
}

}  // namespace

std::int64_t row_count(const FeatureRows& rows) {
  const auto* sparse = std::get_if<SparseRows>(&rows);
  return sparse ? sparse->rows() : std::get<at::Tensor>(rows).size(0);
}

std::int64_t dimensions(const FeatureRows& rows) {
  const auto* sparse = std::get_if<SparseRows>(&rows);
  return sparse ? sparse->dimensions : std::get<at::Tensor>(rows).size(1);
}

Result<std::vector<float>> linear_rewards(const FeatureRows& rows, const LinearHead& head) {
  if (static_cast<std::int64_t>(head.direction.size()) != dimensions(rows)) {
    return invalid_input("the reward's direction has " + std::to_string(head.direction.size()) +
                         " entries, its features " + std::to_string(dimensions(rows)));
  }
  if (const auto* sparse = std::get_if<SparseRows>(&rows)) {
    std::vector<float> rewards;
    for (std::int64_t row = 0; row < sparse->rows(); ++row) {
      rewards.push_back(static_cast<float>(sparse->dot(row, head.direction)));
    }
    return rewards;
  }
  const at::Tensor direction = vector_tensor(head.direction, at::kFloat);
  return to_vector<float>(at::mv(std::get<at::Tensor>(rows), direction));
}

double row_reward(const FeatureRows& rows, std::int64_t row, const LinearHead& head) {
  if (const auto* sparse = std::get_if<SparseRows>(&rows)) return sparse->dot(row, head.direction);
  const auto& dense = std::get<at::Tensor>(rows);
  const float* feature = dense.data_ptr<float>() + row * dense.size(1);
  double sum = 0;
  for (std::size_t i = 0; i < head.direction.size(); ++i) {
    sum += static_cast<double>(feature[i]) * static_cast<double>(head.direction[i]);
  }
  return sum;
}

Features scaled(FeatureRows chosen, FeatureRows rejected, std::span<const std::uint32_t> pairs) {
  const double sum = sum_of_squares(chosen, rejected, pairs);
  const auto width = static_cast<double>(dimensions(chosen));
  const double scale = sum > 0 ? std::sqrt(width * static_cast<double>(pairs.size()) / sum) : 1;
  return {std::move(chosen), std::move(rejected), scale};
}

Result<void> save_features(const Features& features, const std::filesystem::path& file) {
  TensorMap tensors;
  tensors["scale"] = at::full({1}, features.scale, at::kDouble);
  const auto add = [&](const std::string& side, const FeatureRows& rows) {
    if (const auto* dense = std::get_if<at::Tensor>(&rows)) {
      tensors[side] = *dense;
      return;
    }
    const auto& sparse = std::get<SparseRows>(rows);
    tensors["dimensions"] = at::full({1}, sparse.dimensions, at::kLong);
    tensors[side + "_offsets"] = vector_tensor(sparse.offsets, at::kLong);
    tensors[side + "_columns"] = vector_tensor(sparse.columns, at::kInt);
    tensors[side + "_values"] = vector_tensor(sparse.values, at::kFloat);
  };
  add("chosen", features.chosen);
  add("rejected", features.rejected);
  return save_safetensors(tensors, file);
}

Result<Features> load_features(const std::filesystem::path& file, std::int64_t pairs) {
  PREFGRID_ASSIGN(const TensorMap tensors, load_safetensors(file));
  Features features;
  PREFGRID_ASSIGN(const at::Tensor scale, tensor_of(tensors, "scale", at::kDouble, 1, file));
  if (scale.numel() != 1) return damaged(file, "tensor 'scale' has another shape");
  features.scale = scale.item<double>();
  if (!std::isfinite(features.scale)) return damaged(file, "tensor 'scale' is not finite");
  if (tensors.contains("dimensions")) {
    PREFGRID_ASSIGN(const at::Tensor width, tensor_of(tensors, "dimensions", at::kLong, 1, file));
    if (width.numel() != 1) return damaged(file, "tensor 'dimensions' has another shape");
    const auto dimensions = width.item<std::int64_t>();
    PREFGRID_ASSIGN(features.chosen, load_sparse(tensors, "chosen", dimensions, file));
    PREFGRID_ASSIGN(features.rejected, load_sparse(tensors, "rejected", dimensions, file));
  } else {
    PREFGRID_ASSIGN(features.chosen, tensor_of(tensors, "chosen", at::kFloat, 2, file));
    PREFGRID_ASSIGN(features.rejected, tensor_of(tensors, "rejected", at::kFloat, 2, file));
  }
  if (row_count(features.chosen) != pairs || row_count(features.rejected) != pairs ||
      dimensions(features.chosen) != dimensions(features.rejected)) {
    return invalid_input(file.string() + ": features of " +
                         std::to_string(row_count(features.chosen)) + " pairs, the dataset has " +
                         std::to_string(pairs) + ": they belong to another dataset");
  }
  return features;
}

DifferenceMatrix::DifferenceMatrix(const Features& features, std::span<const std::uint32_t> pairs) {
  if (const auto* chosen = std::get_if<SparseRows>(&features.chosen)) {
    SparseRows rows;
    rows.dimensions = chosen->dimensions;
    for (const std::uint32_t pair : pairs) {
      append_difference(rows, *chosen, std::get<SparseRows>(features.rejected), pair,
                        features.scale);
    }
    rows_ = std::move(rows);
    return;
  }
  const at::Tensor index =
      vector_tensor(std::vector<std::int64_t>(pairs.begin(), pairs.end()), at::kLong);
  const auto& chosen = std::get<at::Tensor>(features.chosen);
  const auto& rejected = std::get<at::Tensor>(features.rejected);
  rows_ = (chosen.index_select(0, index) - rejected.index_select(0, index)) * features.scale;
}

at::Tensor DifferenceMatrix::times(const at::Tensor& right) const {
  if (const auto* dense = std::get_if<at::Tensor>(&rows_)) return at::mm(*dense, right);
  const auto& sparse = std::get<SparseRows>(rows_);
  const at::Tensor from = right.contiguous();
  const std::int64_t width = from.size(1);
  at::Tensor result = at::zeros({sparse.rows(), width});
  const float* in = from.data_ptr<float>();
  float* out = result.data_ptr<float>();
  for (std::int64_t row = 0; row < sparse.rows(); ++row, out += width) {
    const auto columns = sparse.row_columns(row);
    const auto values = sparse.row_values(row);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const float* source = in + columns[i] * width;
      for (std::int64_t j = 0; j < width; ++j) out[j] += values[i] * source[j];
    }
  }
  return result;
}

at::Tensor DifferenceMatrix::transposed_times(const at::Tensor& right) const {
  if (const auto* dense = std::get_if<at::Tensor>(&rows_)) return at::mm(dense->t(), right);
  const auto& sparse = std::get<SparseRows>(rows_);
  const at::Tensor from = right.contiguous();
  const std::int64_t width = from.size(1);
  at::Tensor result = at::zeros({sparse.dimensions, width});
  const float* in = from.data_ptr<float>();
  float* out = result.data_ptr<float>();
  for (std::int64_t row = 0; row < sparse.rows(); ++row, in += width) {
    const auto columns = sparse.row_columns(row);
    const auto values = sparse.row_values(row);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      float* target = out + columns[i] * width;
      for (std::int64_t j = 0; j < width; ++j) target[j] += values[i] * in[j];
    }
  }
  return result;
}

std::vector<std::uint32_t> seen_pairs(const Dataset& dataset, Split split) {
  std::vector<std::uint32_t> pairs;
  for (std::uint32_t i = 0; i < dataset.pairs.size(); ++i) {
    const PairItem& pair = dataset.pairs[i];
    if (pair.split == split && dataset.users[pair.user].seen) pairs.push_back(i);
  }
  return pairs;
}

}  // namespace prefgrid
