// results.csv and report.html: what a finished experiment leaves for people.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.h"
#include "common/value.h"
#include "coordinator/report/result_table.h"

namespace prefgrid {

struct Outputs {
  ResultTable table;
  std::string spec_text;
};

// From an answer to the question "results".
Result<Outputs> outputs_from_value(const Value& answer);

// Whether files can be written to a folder that may not be there yet; asked before a run, which
// would end without a place for its tables. Makes nothing.
Result<void> check_output_folder(const std::filesystem::path& folder);

// Writes DIR/results.csv and DIR/report.html, each whole or not at all; makes DIR.
Result<void> write_outputs(const Outputs& outputs, const std::filesystem::path& folder);
// Of its error: says it, returns the exit code. The results stay in the store.
int report_unwritten(const Error& error);

}  // namespace prefgrid
