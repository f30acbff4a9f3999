// How much the packed pass saves: candidate states of one response of T = 64 tokens with k = 10,
// against one forward pass of the whole text per (position, candidate), on the same model in the
// same process. One JSON line: times in ms, policy_accuracy_speedup, and the largest difference.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "common/random.h"
#include "worker/decoding/packed_scoring.h"
#include "worker/executor/run_job.h"
#include "worker/nn/training.h"

namespace prefgrid {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  return took.count();
}

ModelConfig shape() {
  ModelConfig config;
  config.vocab_size = 1024;
  config.d_model = 96;
  config.layers = 4;
  config.heads = config.kv_heads = 3;
  config.head_dim = 32;
  config.d_ff = 256;
  config.max_tokens = 512;
  return config;
}

std::vector<TokenId> tokens(std::uint64_t seed, int count) {
  RandomStream stream(seed, "bench/tokens");
  std::vector<TokenId> all;
  for (int i = 0; i < count; ++i) all.push_back(static_cast<TokenId>(stream.below(1000)));
  return all;
}

// The published way: T·k passes over prompt, prefix and candidate.
at::Tensor one_pass_each(const Transformer& model, const std::vector<TokenId>& prompt,
                         const std::vector<TokenId>& response, const CandidateSets& sets,
                         TokenId end_token) {
  std::vector<at::Tensor> states;
  std::vector<TokenId> text = prompt;
  for (std::size_t t = 0; t < response.size(); ++t) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(sets.k); ++j) {
      const TokenId token = sets.tokens[t * static_cast<std::size_t>(sets.k) + j];
      std::vector<TokenId> whole = text;
      if (token != end_token) whole.push_back(token);
      states.push_back(prefill(model, whole, 0).last_hidden);
    }
    text.push_back(response[t]);
  }
  return at::stack(states).view({sets.positions, sets.k, -1});
}

int run() {
  constexpr TokenId end_token = 1023;
  const Transformer model = Transformer::initialise(shape(), 1);
  const std::vector<TokenId> prompt = tokens(2, 96);
  std::vector<TokenId> response = tokens(3, 63);
  response.push_back(end_token);

  PromptState policy = prefill(model, prompt, 0);
  const at::Tensor log_probs = response_log_probs(model, policy, response);
  const CandidateSets sets = make_candidate_sets(
      {log_probs.data_ptr<float>(), static_cast<std::size_t>(log_probs.numel())}, log_probs.size(1),
      response, 10);

  double packed_ms = 1e300;
  at::Tensor packed;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    PromptState state = prefill(model, prompt, packed_capacity(sets.positions));
    packed = candidate_states(model, state, response, sets, end_token);
    packed_ms = std::min(packed_ms, milliseconds_since(start));
  }
  const auto start = std::chrono::steady_clock::now();
  const at::Tensor direct = one_pass_each(model, prompt, response, sets, end_token);
  const double direct_ms = milliseconds_since(start);
  const double difference = (packed.narrow(1, 0, sets.k) - direct).abs().max().item<double>();
  std::printf(
      "{\"policy_accuracy_speedup\": %.1f, \"packed_ms\": %.2f, \"one_pass_each_ms\": %.1f, "
      "\"largest_difference\": %.2g, \"T\": 64, \"k\": 10, \"blas_kernel\": \"%s\"}\n",
      direct_ms / packed_ms, packed_ms, direct_ms, difference,
      numerics_profile().blas_kernel.c_str());
  return difference < 1e-4 ? 0 : 1;
}

}  // namespace
}  // namespace prefgrid

int main() {
  prefgrid::prepare_process();
  return prefgrid::run();
}
