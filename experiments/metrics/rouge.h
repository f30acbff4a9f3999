// ROUGE as Google's rouge_score 0.1.2 computes it without stemming. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prefgrid {

// F1 scores as fractions in [0, 1]; tables show them x100.
struct Rouge {
  double rouge1 = 0;
  double rouge2 = 0;
  double rougeL = 0;  // NOLINT: the metric's own name
};

// Order as in the reference: the person's own text first, then what was generated.
Rouge rouge(std::string_view reference, std::string_view generated);

// Lower-cased as Python's str.lower does it, every run of other than [a-z0-9] a gap. Two characters
// beyond ASCII fall on ASCII letters there: the Kelvin sign is "k", a dotted capital I is "i" and a
// gap.
std::vector<std::string> rouge_tokens(std::string_view text);

}  // namespace prefgrid
