// Finds known texts inside other texts: the responses that nobody may train on. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "experiments/datasets/dataset.h"

namespace prefgrid {

// Texts as they are compared here: normalised, without full stops and blanks at the end, so that a
// subject line is found with and without its final stop.
std::string comparable_text(std::string_view text);

// Many texts sought at once (Rabin-Karp on the first `least_contained` bytes of each). Shorter ones
// are only found as a whole: "Fix build" inside a longer text says nothing.
class TextFinder {
 public:
  static constexpr std::size_t least_contained = 20;  // bytes after comparable_text

  // Returns the text's number: 0, 1, ... Empty texts are never found.
  std::uint32_t add(std::string_view text);

  // The numbers of the texts contained in `document`, growing, each once.
  std::vector<std::uint32_t> contained_in(std::string_view document) const;
  // The numbers of the texts that equal `document`.
  std::vector<std::uint32_t> equal_to(std::string_view document) const;

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_window_;  // hash of first bytes
  std::unordered_map<std::string, std::vector<std::uint32_t>> by_text_;
};

// One response of a valid or test item.
struct HeldOutText {
  std::string item_id;
  std::string user;
  Split split = Split::valid;
  bool of_pair = false;
};

// All of a data set's; texts()[n] is the finder's text n.
class HeldOutTexts {
 public:
  explicit HeldOutTexts(const Dataset& dataset);

  const TextFinder& finder() const { return finder_; }
  const std::vector<HeldOutText>& texts() const { return texts_; }
  // Whether a document with this response may be trained on.
  bool clean(std::string_view prompt, std::string_view response) const;

 private:
  TextFinder finder_;
  std::vector<HeldOutText> texts_;
};

}  // namespace prefgrid
