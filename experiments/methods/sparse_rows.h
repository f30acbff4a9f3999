// Rows with few non-zero entries (hashed bags of words), compressed by row. Free of torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace prefgrid {

struct SparseRows {
  std::int64_t dimensions = 0;
  std::vector<std::int64_t> offsets = {0};  // [rows + 1]
  std::vector<std::int32_t> columns;        // rising within a row
  std::vector<float> values;

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::span<const std::int32_t> row_columns(std::int64_t row) const;
  std::span<const float> row_values(std::int64_t row) const;
  void append(std::span<const std::int32_t> row_columns, std::span<const float> row_values);
  // row · direction [dimensions]
  double dot(std::int64_t row, std::span<const float> direction) const;
};

// Appends left[row] − right[row], entries that cancel left out; each times `scale`.
void append_difference(SparseRows& to, const SparseRows& left, const SparseRows& right,
                       std::int64_t row, double scale);

}  // namespace prefgrid
