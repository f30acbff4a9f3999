// What makes two items the same item: equal texts after normalisation. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "experiments/datasets/dataset.h"

namespace prefgrid {

// 64 bits, the same on every machine. A pair's sides have no order: two users may judge it
// differently. One collision among a million items: 3 in 10^8.
std::uint64_t item_key(const PairItem& item);        // prompt and both responses
std::uint64_t item_key(const CompletionItem& item);  // prompt and response

// Of one text, after normalisation.
std::uint64_t text_key(std::string_view text);

}  // namespace prefgrid
