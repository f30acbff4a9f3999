// Adam without weight decay, on small parameter vectors. Source: Kingma & Ba 2015, algorithm 1,
// with PyTorch's defaults (beta 0.9 and 0.999, epsilon 1e-8).
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace prefgrid {

template <class Real>
class Adam {
 public:
  Adam(std::size_t size, double learning_rate)
      : first_(size, 0), second_(size, 0), learning_rate_(learning_rate) {}

  void step(std::span<Real> parameters, std::span<const Real> gradient) {
    ++steps_;
    const double first_correction = 1 - std::pow(0.9, steps_);
    const double second_correction = 1 - std::pow(0.999, steps_);
    const auto rate = static_cast<Real>(learning_rate_ / first_correction);
    const auto root = static_cast<Real>(1 / std::sqrt(second_correction));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Real g = gradient[i];
      first_[i] += Real(0.1) * (g - first_[i]);
      second_[i] += Real(0.001) * (g * g - second_[i]);
      parameters[i] -= rate * first_[i] / (std::sqrt(second_[i]) * root + Real(1e-8));
    }
  }

 private:
  std::vector<Real> first_;
  std::vector<Real> second_;
  double learning_rate_;
  int steps_ = 0;
};

}  // namespace prefgrid
