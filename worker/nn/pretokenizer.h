// Cuts text into the pieces that BPE merges within: GPT-2's pattern, over PCRE2 with its JIT.
// Source: Radford et al. 2019, encoder.py; white space as Unicode defines it, as the Hugging Face
// library does. Immutable after construction; `split` may be called by one thread at a time.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace prefgrid {

class PreTokenizer {
 public:
  PreTokenizer();
  ~PreTokenizer();

  // The pieces in order; joined they are the text. Bytes that are no UTF-8 form pieces of their
  // own, so that every byte string can be cut.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prefgrid
