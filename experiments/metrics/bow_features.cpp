#include "experiments/metrics/bow_features.h"

#include <algorithm>
#include <string_view>

#include "common/check.h"
#include "experiments/metrics/style.h"

namespace prefgrid {
namespace {

// The habits stand for every word at once, so they weigh more than one word does.
constexpr float style_weight = 4;

constexpr std::uint64_t fnv_basis = 14695981039346656037ull;
constexpr std::uint64_t fnv_prime = 1099511628211ull;

std::uint64_t fnv1a(std::string_view text, std::uint64_t state = fnv_basis) {
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * fnv_prime;
  return state;
}

// FNV's low bits are weak: the finaliser of MurmurHash3 spreads them.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
  return x ^ x >> 33;
}

bool blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Collector {
 public:
  explicit Collector(std::uint32_t dimensions) : dimensions_(dimensions) {}

  void add(std::uint64_t hash, float value) {
    features_.push_back({static_cast<std::uint32_t>(mix(hash) % dimensions_), value});
  }
  void add_bigram(std::string_view first, std::string_view second) {
    add(fnv1a(second, fnv1a("\x1f", fnv1a(first))), 1);
  }

  std::vector<SparseFeature> merged() && {
    std::ranges::sort(features_, {}, &SparseFeature::index);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < features_.size(); ++i) {
      if (kept > 0 && features_[kept - 1].index == features_[i].index) {
        features_[kept - 1].value += features_[i].value;
      } else {
        features_[kept++] = features_[i];
      }
    }
    features_.resize(kept);
    return std::move(features_);
  }

 private:
  std::uint32_t dimensions_;
  std::vector<SparseFeature> features_;
};

// Words (letters, digits, '_', anything beyond ASCII) and single punctuation marks.
void add_words(std::string_view text, Collector& collector) {
  std::string_view previous = "\x02";  // the beginning
  for (std::size_t at = 0; at < text.size();) {
    if (blank(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    if (word_character(text[at])) {
      while (end < text.size() && word_character(text[end])) ++end;
    }
    const std::string_view token = text.substr(at, end - at);
    collector.add(fnv1a(token), 1);
    collector.add_bigram(previous, token);
    previous = token;
    at = end;
  }
  collector.add_bigram(previous, "\x03");  // the end
}

void add_style(std::string_view text, Collector& collector) {
  const SubjectStyle style = subject_style(text);
  const bool capital = style.capital == Capital::upper;
  collector.add(fnv1a(capital ? "\x04upper" : "\x04lower"), style_weight);
  if (!style.prefix.empty()) {
    collector.add(fnv1a(capital ? "\x04prefix, upper" : "\x04prefix, lower"), style_weight);
  }
  collector.add(fnv1a(style.final_stop ? "\x04stop" : "\x04no stop"), style_weight);
}

}  // namespace

std::vector<SparseFeature> bow_features(std::string_view response, std::uint32_t dimensions) {
  PREFGRID_CHECK(dimensions > 0, "bow_features needs at least one dimension");
  Collector collector(dimensions);
  add_words(response, collector);
  add_style(response, collector);
  return std::move(collector).merged();
}

double dot(std::span<const SparseFeature> features, std::span<const float> weights) {
  double sum = 0;
  for (const SparseFeature& feature : features) {
    PREFGRID_CHECK(feature.index < weights.size(), "a feature beyond the weights");
    sum += static_cast<double>(feature.value) * static_cast<double>(weights[feature.index]);
  }
  return sum;
}

}  // namespace prefgrid
