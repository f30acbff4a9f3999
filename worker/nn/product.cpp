#include "worker/nn/product.h"

#include <limits>
#include <string>

#include "common/check.h"

// The Fortran interface: every BLAS has it. libtorch does not export its own wrapper.
extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* a_width,
                       const float* b, const int* b_width, const float* beta, float* c,
                       const int* c_width);

namespace prefgrid {
namespace {

int narrow(std::int64_t value) {
  PREFGRID_CHECK(value >= 0 && value <= std::numeric_limits<int>::max(),
                 "a matrix extent of " + std::to_string(value));
  return static_cast<int>(value);
}

}  // namespace

void multiply(const Product& product, const float* a, std::int64_t a_width, const float* b,
              std::int64_t b_width, float* c, std::int64_t c_width) {
  if (product.m == 0 || product.n == 0) return;
  // BLAS counts by columns: the same memory is C' = op(B)' · op(A)'.
  const int m = narrow(product.m);
  const int n = narrow(product.n);
  const int k = narrow(product.k);
  const int a_step = narrow(a_width);
  const int b_step = narrow(b_width);
  const int c_step = narrow(c_width);
  sgemm_(product.transpose_b ? "T" : "N", product.transpose_a ? "T" : "N", &n, &m, &k,
         &product.alpha, b, &b_step, a, &a_step, &product.beta, c, &c_step);
}

}  // namespace prefgrid
