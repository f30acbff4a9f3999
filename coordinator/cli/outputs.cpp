#include "coordinator/cli/outputs.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "common/files.h"
#include "coordinator/cli/value_json.h"
#include "coordinator/cli/verb.h"
#include "coordinator/report/render.h"

namespace prefgrid {

namespace fs = std::filesystem;

Result<Outputs> outputs_from_value(const Value& answer) {
  Outputs outputs;
  const auto table = field_or<ValueMap>(answer, "table", {});
  PREFGRID_ASSIGN(outputs.table, result_table_from_value(table));
  outputs.spec_text = text_field(answer, "spec_text");
  return outputs;
}

Result<void> check_output_folder(const fs::path& folder) {
  std::error_code problem;
  fs::path place = fs::absolute(folder, problem);
  while (!problem && place.has_relative_path()) {
    const fs::file_status status = fs::status(place, problem);
    if (fs::exists(status)) break;
    if (status.type() != fs::file_type::not_found) break;  // a name too long, no permission
    problem.clear();
    place = place.parent_path();
  }
  const std::string asked = "cannot write to the folder " + folder.string() + ": ";
  if (problem) return invalid_input(asked + problem.message());
  if (!fs::is_directory(place, problem)) {
    return invalid_input(asked + place.string() + " is a file; give a folder");
  }
  if (::access(place.c_str(), W_OK | X_OK) != 0) {
    return os_error(errno, "cannot write to the folder " + folder.string());
  }
  // Some file systems say yes and mean no.
  std::string probe = (place / ".prefgrid-XXXXXX").string();
  if (::mkdtemp(probe.data()) == nullptr) {
    return invalid_input(asked + std::generic_category().message(errno));
  }
  ::rmdir(probe.c_str());
  return {};
}

Result<void> write_outputs(const Outputs& outputs, const fs::path& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) {
    return os_error(problem.value(), "cannot make the folder " + folder.string());
  }
  PREFGRID_TRY(write_file_atomic(folder / "results.csv", to_csv(outputs.table)));
  return write_file_atomic(folder / "report.html",
                           to_html(outputs.table, {PREFGRID_VERSION, outputs.spec_text}));
}

int report_unwritten(const Error& error) {
  if (error.code != ErrorCode::out_of_space) {
    report_error(error);
    return exit_failed;
  }
  report_error({error.code, error.message + "; make room and run the same command again: the "
                                            "results are in the store"});
  return exit_disk_full;
}

}  // namespace prefgrid
