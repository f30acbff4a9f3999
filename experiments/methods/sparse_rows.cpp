#include "experiments/methods/sparse_rows.h"

#include <string>

#include "common/check.h"

namespace prefgrid {

std::span<const std::int32_t> SparseRows::row_columns(std::int64_t row) const {
  const auto at = static_cast<std::size_t>(row);
  return std::span(columns).subspan(static_cast<std::size_t>(offsets[at]),
                                    static_cast<std::size_t>(offsets[at + 1] - offsets[at]));
}

std::span<const float> SparseRows::row_values(std::int64_t row) const {
  const auto at = static_cast<std::size_t>(row);
  return std::span(values).subspan(static_cast<std::size_t>(offsets[at]),
                                   static_cast<std::size_t>(offsets[at + 1] - offsets[at]));
}

void SparseRows::append(std::span<const std::int32_t> row_columns,
                        std::span<const float> row_values) {
  PREFGRID_CHECK(row_columns.size() == row_values.size(), "columns and values differ in number");
  columns.insert(columns.end(), row_columns.begin(), row_columns.end());
  values.insert(values.end(), row_values.begin(), row_values.end());
  offsets.push_back(static_cast<std::int64_t>(columns.size()));
}

double SparseRows::dot(std::int64_t row, std::span<const float> direction) const {
  const auto at = row_columns(row);
  const auto value = row_values(row);
  double sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    sum += static_cast<double>(value[i]) *
           static_cast<double>(direction[static_cast<std::size_t>(at[i])]);
  }
  return sum;
}

void append_difference(SparseRows& to, const SparseRows& left, const SparseRows& right,
                       std::int64_t row, double scale) {
  const auto left_columns = left.row_columns(row);
  const auto right_columns = right.row_columns(row);
  const auto left_values = left.row_values(row);
  const auto right_values = right.row_values(row);
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < left_columns.size() || j < right_columns.size()) {
    const bool take_left = j == right_columns.size() ||
                           (i < left_columns.size() && left_columns[i] <= right_columns[j]);
    const bool take_right = i == left_columns.size() ||
                            (j < right_columns.size() && right_columns[j] <= left_columns[i]);
    const std::int32_t column = take_left ? left_columns[i] : right_columns[j];
    const float difference =
        (take_left ? left_values[i++] : 0.0F) - (take_right ? right_values[j++] : 0.0F);
    if (difference == 0.0F) continue;
    to.columns.push_back(column);
    to.values.push_back(static_cast<float>(static_cast<double>(difference) * scale));
  }
  to.offsets.push_back(static_cast<std::int64_t>(to.columns.size()));
}

}  // namespace prefgrid
