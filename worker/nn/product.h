// fp32 matrix products on the BLAS that libtorch itself links, on raw rows. Any thread.
#pragma once

#include <cstdint>

namespace prefgrid {

// Row-major C[m, n] = alpha · op(A) · op(B) + beta · C; op(A) is [m, k], op(B) is [k, n].
struct Product {
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  float alpha = 1;
  float beta = 0;
};

// `*_width`: floats from row to row of a matrix as it is stored. Leaves C alone where m or n is 0;
// with beta 0 what C held, NaN too, does not matter.
void multiply(const Product& product, const float* a, std::int64_t a_width, const float* b,
              std::int64_t b_width, float* c, std::int64_t c_width);

}  // namespace prefgrid
