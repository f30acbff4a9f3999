#include "coordinator/cli/outputs.h"

#include "common/files.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/report/render.h"

namespace prefgrid {

Result<Outputs> outputs_from_value(const Value& answer) {
  Outputs outputs;
  const auto table = field_or<ValueMap>(answer, "table", {});
  PREFGRID_ASSIGN(outputs.table, result_table_from_value(table));
  outputs.spec_text = text_field(answer, "spec_text");
  return outputs;
}

Result<Outputs> ask_outputs(Questions& questions, const std::string& experiment) {
  ValueMap arguments;
  if (!experiment.empty()) arguments.emplace("experiment", experiment);
  PREFGRID_ASSIGN(const Value answer, questions.ask("results", arguments));
  return outputs_from_value(answer);
}

Result<void> write_outputs(const Outputs& outputs, const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) {
    return os_error(problem.value(), "cannot make the folder " + folder.string());
  }
  PREFGRID_TRY(write_file_atomic(folder / "results.csv", to_csv(outputs.table)));
  return write_file_atomic(folder / "report.html",
                           to_html(outputs.table, {PREFGRID_VERSION, outputs.spec_text}));
}

}  // namespace prefgrid
