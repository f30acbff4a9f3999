// results.csv and report.html: what a finished experiment leaves for people.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.h"
#include "coordinator/cli/questions.h"
#include "coordinator/report/result_table.h"

namespace prefgrid {

struct Outputs {
  ResultTable table;
  std::string spec_text;
};

// From the verb "results"; the newest experiment if no name is given.
Result<Outputs> ask_outputs(Questions& questions, const std::string& experiment);
Result<Outputs> outputs_from_value(const Value& answer);

// Writes DIR/results.csv and DIR/report.html, each whole or not at all; makes DIR.
Result<void> write_outputs(const Outputs& outputs, const std::filesystem::path& folder);

}  // namespace prefgrid
