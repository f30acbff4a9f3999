#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>

#include <string>
#include <string_view>

#include "worker/executor/run_job.h"
#include "worker/nn/torch.h"

namespace prefgrid {
namespace {

// "OpenBLAS 0.3.21 SkylakeX", from the library that this process has loaded.
std::string blas_kernel() {
  using TextFunction = char* (*)();
  const auto text = [](const char* name) -> std::string {
    void* symbol = ::dlsym(RTLD_DEFAULT, name);
    return symbol ? reinterpret_cast<TextFunction>(symbol)() : "";
  };
  const std::string kernel = text("openblas_get_corename");
  if (kernel.empty()) return "unknown";
  // "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64"
  const std::string config = text("openblas_get_config");
  const std::size_t second = config.find(' ');
  const std::size_t third = second == std::string::npos ? second : config.find(' ', second + 1);
  return (config.empty() ? "OpenBLAS" : config.substr(0, third)) + " " + kernel;
}

// What ATen's own kernels were chosen for on this processor (and by ATEN_CPU_CAPABILITY): libtorch
// exports it only as a line of its description, "CPU capability usage: AVX2".
std::string cpu_capability() {
  const std::string description = at::show_config();
  constexpr std::string_view label = "CPU capability usage: ";
  const std::size_t found = description.find(label);
  if (found == std::string::npos) return "unknown";
  const std::size_t start = found + label.size();
  std::string name = description.substr(start, description.find('\n', start) - start);
  for (char& letter : name) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return name;
}

}  // namespace

NumericsProfile numerics_profile() {
  NumericsProfile profile;
  profile.device = "cpu";
  profile.library = "libtorch " TORCH_VERSION;
  profile.blas_kernel = blas_kernel();
  profile.cpu_capability = cpu_capability();
  profile.threads = static_cast<std::uint32_t>(at::get_num_threads());
  profile.dtype = "fp32";
  return profile;
}

}  // namespace prefgrid
