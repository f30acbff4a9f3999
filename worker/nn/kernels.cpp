#include "worker/nn/kernels.h"

#include <cmath>
#include <cstring>

// One clone a vector extension, chosen by the loader; all give the same bits (kernels.h).
#define PREFGRID_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#define PREFGRID_INLINE static inline __attribute__((always_inline))

namespace prefgrid::kernels {
namespace {

constexpr std::int64_t lanes = 16;
typedef float Lanes __attribute__((vector_size(64)));
typedef std::int32_t IntLanes __attribute__((vector_size(64)));

PREFGRID_INLINE Lanes load(const float* from) {
  Lanes value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
PREFGRID_INLINE void store(Lanes value, float* to) {
  std::memcpy(to, &value, sizeof value);
}
PREFGRID_INLINE Lanes load_part(const float* from, std::int64_t count, float filler) {
  Lanes value = Lanes{} + filler;
  std::memcpy(&value, from, static_cast<std::size_t>(count) * sizeof(float));
  return value;
}
PREFGRID_INLINE void store_part(Lanes value, std::int64_t count, float* to) {
  std::memcpy(to, &value, static_cast<std::size_t>(count) * sizeof(float));
}

// A fixed tree, so that the order of additions never changes.
PREFGRID_INLINE float sum(Lanes value) {
  float part[lanes];
  store(value, part);
  for (std::int64_t width = lanes / 2; width > 0; width /= 2) {
    for (std::int64_t i = 0; i < width; ++i) part[i] += part[i + width];
  }
  return part[0];
}
PREFGRID_INLINE float largest(Lanes value) {
  float part[lanes];
  store(value, part);
  float result = part[0];
  for (std::int64_t i = 1; i < lanes; ++i) result = part[i] > result ? part[i] : result;
  return result;
}

// Relative error below 2e-7; exactly 0 below -87.3, NaN stays NaN. Source: Cephes expf.
PREFGRID_INLINE Lanes exponential(Lanes x) {
  const IntLanes vanishing = x < -87.3F;
  x = x > 88.3F ? Lanes{} + 88.3F : x;
  x = vanishing ? Lanes{} : x;
  const Lanes rounder = Lanes{} + 12582912.0F;  // 1.5·2²³: adding it rounds to an integer
  const Lanes n = (x * 1.44269504F + rounder) - rounder;
  const Lanes r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  Lanes p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const IntLanes bits = (__builtin_convertvector(n, IntLanes) + 127) << 23;
  Lanes power;
  std::memcpy(&power, &bits, sizeof power);
  p = p * power;
  return vanishing ? Lanes{} : p;
}
PREFGRID_INLINE Lanes logistic(Lanes x) {
  return 1.0F / (1.0F + exponential(-x));
}

PREFGRID_INLINE float dot_inline(const float* x, const float* y, std::int64_t size) {
  Lanes total{};
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) total += load(x + i) * load(y + i);
  if (i < size) total += load_part(x + i, size - i, 0) * load_part(y + i, size - i, 0);
  return sum(total);
}

}  // namespace

PREFGRID_CLONES void rms_norm(const float* x, const float* gain, std::int64_t rows,
                              std::int64_t width, float epsilon, float* y, float* inverse) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const float mean = dot_inline(x, x, width) / static_cast<float>(width);
    const float scale = 1.0F / std::sqrt(mean + epsilon);
    if (inverse != nullptr) inverse[row] = scale;
    for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] * scale * gain[i];
  }
}

PREFGRID_CLONES void rms_norm_backward(const float* dy, const float* x, const float* gain,
                                       const float* inverse, std::int64_t rows, std::int64_t width,
                                       float* dx, float* dgain) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, dy += width, dx += width) {
    const float scale = inverse[row];
    Lanes total{};
    std::int64_t i = 0;
    for (; i + lanes <= width; i += lanes) total += load(dy + i) * load(gain + i) * load(x + i);
    for (; i < width; ++i) total[0] += dy[i] * gain[i] * x[i];
    const float slope = sum(total) * scale * scale * scale / static_cast<float>(width);
    for (i = 0; i < width; ++i) {
      dx[i] += dy[i] * gain[i] * scale - x[i] * slope;
      dgain[i] += dy[i] * x[i] * scale;
    }
  }
}

PREFGRID_CLONES void rope(const RopeRows& shape, const std::int64_t* positions, const float* table,
                          bool inverse, float* x) {
  const std::int64_t half = shape.head_dim / 2;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const float* cosines = table + positions[row] * shape.head_dim;
    const float* sines = cosines + half;
    const float sign = inverse ? -1.0F : 1.0F;
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      float* first = x + row * shape.stride + head * shape.head_dim;
      float* second = first + half;
      for (std::int64_t i = 0; i < half; ++i) {
        const float a = first[i];
        const float b = second[i];
        const float sine = sign * sines[i];
        first[i] = a * cosines[i] - b * sine;
        second[i] = b * cosines[i] + a * sine;
      }
    }
  }
}

PREFGRID_CLONES void swiglu(const float* gate_up, std::int64_t rows, std::int64_t d_ff,
                            float* out) {
  for (std::int64_t row = 0; row < rows; ++row, gate_up += 2 * d_ff, out += d_ff) {
    std::int64_t i = 0;
    for (; i + lanes <= d_ff; i += lanes) {
      const Lanes gate = load(gate_up + i);
      store(gate * logistic(gate) * load(gate_up + d_ff + i), out + i);
    }
    if (i < d_ff) {
      const Lanes gate = load_part(gate_up + i, d_ff - i, 0);
      const Lanes up = load_part(gate_up + d_ff + i, d_ff - i, 0);
      store_part(gate * logistic(gate) * up, d_ff - i, out + i);
    }
  }
}

// d silu(g) = s·(1 + g·(1 − s)), s = logistic(g).
PREFGRID_CLONES void swiglu_backward(const float* dout, const float* gate_up, std::int64_t rows,
                                     std::int64_t d_ff, float* dgate_up) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < d_ff; i += lanes) {
      const std::int64_t count = d_ff - i < lanes ? d_ff - i : lanes;
      const Lanes gate = load_part(gate_up + i, count, 0);
      const Lanes up = load_part(gate_up + d_ff + i, count, 0);
      const Lanes slope = load_part(dout + i, count, 0);
      const Lanes s = logistic(gate);
      store_part(slope * up * (s * (1.0F + gate * (1.0F - s))), count, dgate_up + i);
      store_part(slope * gate * s, count, dgate_up + d_ff + i);
    }
    gate_up += 2 * d_ff;
    dgate_up += 2 * d_ff;
    dout += d_ff;
  }
}

PREFGRID_CLONES float softmax(float* x, std::int64_t size, float scale) {
  Lanes top = Lanes{} - INFINITY;
  for (std::int64_t i = 0; i < size; i += lanes) {
    const std::int64_t count = size - i < lanes ? size - i : lanes;
    const Lanes value = (count == lanes ? load(x + i) : load_part(x + i, count, -INFINITY)) * scale;
    top = value > top ? value : top;
  }
  const float maximum = largest(top);
  if (maximum == -INFINITY) {
    for (std::int64_t i = 0; i < size; ++i) x[i] = x[i] == x[i] ? 0.0F : x[i];  // NaN stays
    return -INFINITY;
  }
  Lanes total{};
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const Lanes value = exponential(load(x + i) * scale - maximum);
    total += value;
    store(value, x + i);
  }
  if (i < size) {
    const Lanes value = exponential(load_part(x + i, size - i, -INFINITY) * scale - maximum);
    total += value;
    store_part(value, size - i, x + i);
  }
  const float mass = sum(total);
  const float share = 1.0F / mass;
  for (i = 0; i < size; ++i) x[i] *= share;
  return maximum + std::log(mass);
}

PREFGRID_CLONES void add(const float* y, std::int64_t size, float* x) {
  for (std::int64_t i = 0; i < size; ++i) x[i] += y[i];
}

PREFGRID_CLONES void scale(float factor, std::int64_t size, float* x) {
  for (std::int64_t i = 0; i < size; ++i) x[i] *= factor;
}

PREFGRID_CLONES void exp_shifted(float scale, float log_sum, std::int64_t size, float* p) {
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) store(exponential(load(p + i) * scale - log_sum), p + i);
  if (i < size) {
    store_part(exponential(load_part(p + i, size - i, 0) * scale - log_sum), size - i, p + i);
  }
}

PREFGRID_CLONES void softmax_backward(const float* p, float scale, float delta, std::int64_t size,
                                      float* ds) {
  for (std::int64_t i = 0; i < size; ++i) ds[i] = scale * p[i] * (ds[i] - delta);
}

PREFGRID_CLONES float dot(const float* x, const float* y, std::int64_t size) {
  return dot_inline(x, y, size);
}

PREFGRID_CLONES void few_rows_linear(const float* x, const float* w, std::int64_t rows,
                                     std::int64_t columns, std::int64_t width, float* out) {
  for (std::int64_t column = 0; column < columns; ++column) {
    const float* weights = w + column * width;
    for (std::int64_t row = 0; row < rows; ++row) {
      out[row * columns + column] = dot_inline(x + row * width, weights, width);
    }
  }
}

PREFGRID_CLONES void adamw(const AdamStep& step, const float* gradient, std::int64_t size,
                           float* weight, float* mean, float* square) {
  const float size1 = step.rate / step.correction1;
  const float share2 = 1.0F / step.correction2;
  const float keep = 1.0F - step.rate * step.decay;
  for (std::int64_t i = 0; i < size; ++i) {
    const float g = gradient[i] * step.gradient_scale;
    mean[i] = step.beta1 * mean[i] + (1.0F - step.beta1) * g;
    square[i] = step.beta2 * square[i] + (1.0F - step.beta2) * g * g;
    const float deviation = __builtin_sqrtf(square[i] * share2) + step.epsilon;
    weight[i] = weight[i] * keep - size1 * mean[i] / deviation;
  }
}

double sum_of_squares(const float* x, std::int64_t size) {
  double part[4] = {0, 0, 0, 0};
  for (std::int64_t i = 0; i < size; ++i) part[i & 3] += static_cast<double>(x[i]) * x[i];
  return (part[0] + part[1]) + (part[2] + part[3]);
}

}  // namespace prefgrid::kernels
