// The parts of libtorch that prefgrid uses, and everything that differs between its versions.
// Included instead of torch/torch.h, which costs 12 s a file; this header is precompiled.
#pragma once

#include <ATen/ATen.h>
#include <ATen/native/CPUBlas.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

namespace prefgrid {

// Row-major C[m, n] = alpha · op(A) · op(B) + beta · C on the BLAS that libtorch itself uses.
// `*_width`: floats from row to row of the matrix as it is stored. Leaves C alone where m or n is
// 0.
struct Product {
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  float alpha = 1;
  float beta = 0;
};
inline void multiply(const Product& p, const float* a, std::int64_t a_width, const float* b,
                     std::int64_t b_width, float* c, std::int64_t c_width) {
  using at::native::TransposeType;
  const auto kind = [](bool transpose) {
    return transpose ? TransposeType::Transpose : TransposeType::NoTranspose;
  };
  if (p.m == 0 || p.n == 0) return;
  // BLAS counts by columns: the same memory is C' = op(B)' · op(A)'.
  at::native::cpublas::gemm(kind(p.transpose_b), kind(p.transpose_a), p.n, p.m, p.k, p.alpha, b,
                            b_width, a, a_width, p.beta, c, c_width);
}

}  // namespace prefgrid
