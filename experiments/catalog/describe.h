// The catalogue for people and programs: a table, JSON, and the field lists of docs/spec.md.
// Pure functions.
#pragma once

#include <string>

#include "experiments/catalog/catalog.h"

namespace prefgrid {

// "an integer from 1 to 256", "one of global_bt, bow": what a person may write for the field.
std::string allowed_values(const Field& field);
// "5", "0.5", "global_bt", "[0, 0.5, 1]": a value as it stands in a spec.
std::string value_text(const Value& value);

// `prefgrid methods --json`: methods, decoders, models, evaluation and datasets with their fields.
std::string methods_json(const Catalog& catalog);
// `prefgrid methods`: the same for a terminal, at most 100 columns where the words allow.
std::string methods_table(const Catalog& catalog);
// The generated part of docs/spec.md: a Markdown table of fields for each section.
std::string fields_markdown(const Catalog& catalog);

}  // namespace prefgrid
