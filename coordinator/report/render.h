// Tables as text. The same table gives the same bytes: no date, no duration, no host in it.
#pragma once

#include <string>

#include "coordinator/report/result_table.h"

namespace prefgrid {

// RFC 4180; a header line; numbers with six significant digits; absent values are empty.
std::string to_csv(const ResultTable& table);

// {"experiment", "units": {metric: unit}, "rows": [...], "missing": [...]}; the CSV's numbers;
// absent values are null. `indent` of -1: one line.
std::string to_json(const ResultTable& table, int indent = 2);

// For a terminal: one block per user group, one line per configuration, the main metrics side by
// side with their intervals; then the models' losses; then what is missing.
std::string to_text(const ResultTable& table);

struct Provenance {
  std::string software_version;
  std::string spec_text;  // as the person wrote it
};

// One self-contained page: no script, no network.
std::string to_html(const ResultTable& table, const Provenance& provenance);

}  // namespace prefgrid
