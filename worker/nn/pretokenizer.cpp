#include "worker/nn/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>

#include "common/check.h"

namespace prefgrid {
namespace {

// PCRE2's own \s counts U+180E too, which Unicode no longer calls white space.
constexpr const char* space =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

std::string gpt2_pattern() {
  const std::string s = space;
  return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^)" + s + R"(\p{L}\p{N}]+|[)" + s +
         R"(]+(?![^)" + s + R"(])|[)" + s + "]+";
}

}  // namespace

struct PreTokenizer::Impl {
  pcre2_code* code = nullptr;
  pcre2_match_data* match = nullptr;

  ~Impl() {
    pcre2_match_data_free(match);
    pcre2_code_free(code);
  }

  int find(std::string_view text, std::size_t from, std::uint32_t options) const {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, options,
                       match, nullptr);
  }
  // How many bytes at the front are UTF-8. One pass, up to the first that is not.
  std::size_t valid_prefix(std::string_view text) const {
    const int count = find(text, 0, 0);
    const bool broken = count <= PCRE2_ERROR_UTF8_ERR1 && count >= PCRE2_ERROR_UTF8_ERR21;
    return broken ? pcre2_get_startchar(match) : text.size();
  }
  // Checked once above, not at every match: that would be quadratic.
  void split_valid(std::string_view text, std::vector<std::string_view>& pieces) const {
    for (std::size_t done = 0; done < text.size();) {
      const int count = find(text, done, PCRE2_NO_UTF_CHECK);
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match);
      PREFGRID_CHECK(count == 1 && range[0] == done && range[1] > done,
                     "the pattern does not cover the text: " + std::to_string(count));
      pieces.push_back(text.substr(done, range[1] - done));
      done = range[1];
    }
  }
};

PreTokenizer::PreTokenizer() : impl_(std::make_unique<Impl>()) {
  const std::string pattern = gpt2_pattern();
  int error = 0;
  PCRE2_SIZE offset = 0;
  impl_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                              PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
  PREFGRID_CHECK(impl_->code != nullptr, "PCRE2 refuses the pattern at " + std::to_string(offset));
  pcre2_jit_compile(impl_->code, PCRE2_JIT_COMPLETE);  // without a JIT it is slower, not wrong
  impl_->match = pcre2_match_data_create(1, nullptr);
  PREFGRID_CHECK(impl_->match != nullptr, "out of memory");
}

PreTokenizer::~PreTokenizer() = default;

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  std::size_t broken = 0;  // bytes at the front of `text` that are no UTF-8
  while (broken < text.size()) {
    const std::size_t valid = impl_->valid_prefix(text.substr(broken));
    if (valid == 0) {
      ++broken;
      continue;
    }
    if (broken > 0) pieces.push_back(text.substr(0, broken));
    impl_->split_valid(text.substr(broken, valid), pieces);
    text.remove_prefix(broken + valid);
    broken = 0;
  }
  if (broken > 0) pieces.push_back(text);
  return pieces;
}

}  // namespace prefgrid
