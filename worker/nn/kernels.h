// The small loops between matrix products, by hand: at these model sizes the overhead of small
// tensor operations would cost more than the arithmetic. Row-major fp32, no allocation, any thread.
// Sixteen lanes are written out and nothing is contracted, so the bits are the same whichever
// vector extension the processor has. Outputs are the last pointer arguments.
#pragma once

#include <cstdint>

namespace prefgrid::kernels {

// y = x / sqrt(mean(x²) + epsilon) · gain. x, y: [rows, width]; inverse (may be null): [rows],
// 1/sqrt(..) for the backward pass. Source: Zhang and Sennrich 2019.
void rms_norm(const float* x, const float* gain, std::int64_t rows, std::int64_t width,
              float epsilon, float* y, float* inverse);
// Adds to dx [rows, width] and dgain [width].
void rms_norm_backward(const float* dy, const float* x, const float* gain, const float* inverse,
                       std::int64_t rows, std::int64_t width, float* dx, float* dgain);

// Rotates `heads` heads at the start of each row, in place: element i of a head's first half with
// element i of its second. table: [positions, head_dim]: cosines, then sines of the angles.
// inverse: by the negative angle (the backward pass). Source: Su et al. 2021, as in Llama.
struct RopeRows {
  std::int64_t rows = 0;
  std::int64_t stride = 0;  // floats from row to row
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
};
void rope(const RopeRows& shape, const std::int64_t* positions, const float* table, bool inverse,
          float* x);

// out = silu(gate) · up. gate_up: [rows, 2·d_ff], the gate first; out: [rows, d_ff].
void swiglu(const float* gate_up, std::int64_t rows, std::int64_t d_ff, float* out);
void swiglu_backward(const float* dout, const float* gate_up, std::int64_t rows, std::int64_t d_ff,
                     float* dgate_up);

// x[i] = exp(scale·x[i] − m) / Σ in place, m the maximum; returns m + log Σ. All −inf: zeros.
float softmax(float* x, std::int64_t size, float scale);
// x[i] += y[i].
void add(const float* y, std::int64_t size, float* x);
// x[i] *= factor.
void scale(float factor, std::int64_t size, float* x);
// p[i] = exp(scale·p[i] − log_sum), in place: the softmax again, from its normaliser.
void exp_shifted(float scale, float log_sum, std::int64_t size, float* p);
// ds[i] = scale·p[i]·(ds[i] − delta), in place: the softmax's backward pass.
void softmax_backward(const float* p, float scale, float delta, std::int64_t size, float* ds);
float dot(const float* x, const float* y, std::int64_t size);
// out[r, j] = x[r] · w[j] for a few rows. w: [columns, width].
void few_rows_linear(const float* x, const float* w, std::int64_t rows, std::int64_t columns,
                     std::int64_t width, float* out);

// One step of AdamW. Source: Loshchilov and Hutter 2019; decay is decoupled: w −= rate·decay·w.
struct AdamStep {
  float rate = 0;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float decay = 0;
  float correction1 = 1;     // 1 − beta1^step
  float correction2 = 1;     // 1 − beta2^step
  float gradient_scale = 1;  // of clipping
};
void adamw(const AdamStep& step, const float* gradient, std::int64_t size, float* weight,
           float* mean, float* square);
double sum_of_squares(const float* x, std::int64_t size);

}  // namespace prefgrid::kernels
