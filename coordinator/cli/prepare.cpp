#include "coordinator/cli/prepare.h"

#include <utility>

#include "common/files.h"
#include "common/limits.h"
#include "common/sha256.h"
#include "common/yaml.h"
#include "experiments/catalog/catalog.h"
#include "experiments/catalog/describe.h"

namespace prefgrid {

namespace fs = std::filesystem;

namespace {

// As the spec has it, or the default of its kind. The catalogue has checked that there is one.
std::string written_path(const ValueMap& section) {
  const DatasetRow* row = catalog().dataset(section.at("kind").text());
  PREFGRID_CHECK(row != nullptr, "a checked spec names an unknown kind of dataset");
  return field_value(row->fields, section, "path").text();
}

}  // namespace

Result<ExperimentSpec> read_spec(const fs::path& spec_file) {
  PREFGRID_ASSIGN(const YamlNode root, load_yaml(spec_file));
  return parse_spec(root, spec_file.string(), catalog());
}

Result<LoadedDataset> read_dataset_of(const ExperimentSpec& spec, const fs::path& spec_file) {
  const fs::path written = written_path(spec.dataset);
  std::error_code ignored;
  const fs::path folder = fs::absolute(spec_file, ignored).parent_path();
  ValueMap section = spec.dataset;
  section["path"] = (folder / written).lexically_normal().string();
  auto loaded = load_dataset(section);
  if (loaded) return loaded;
  Error error = loaded.error();
  if (error.code == ErrorCode::not_found && written.is_relative()) {
    error.message += " (a relative path starts at the spec's folder)";
  }
  return in_dataset_section(spec, std::move(error));
}

// What a person allowed to be left out, so that nobody misses it: "" if nothing was.
std::string left_out_note(const PreparedExperiment& prepared, const fs::path& spec_file) {
  const auto choice = prepared.spec.dataset.find("on_bad_row");
  if (choice == prepared.spec.dataset.end() || choice->second != Value("skip")) return "";
  std::uint64_t rows = 0;
  std::string reasons;
  for (const SkippedRows& skipped : prepared.dataset.skipped) {
    rows += skipped.count;
    reasons += (reasons.empty() ? "" : ", ") + std::to_string(skipped.count) + " " + skipped.reason;
  }
  if (rows == 0) return "";
  return "the dataset leaves out " + std::to_string(rows) + (rows == 1 ? " row (" : " rows (") + reasons +
         "); `prefgrid dataset show " + spec_file.string() + "` says what is left";
}

Result<PreparedExperiment> prepare(const fs::path& spec_file) {
  PreparedExperiment out;
  PREFGRID_ASSIGN(out.spec, read_spec(spec_file));
  PREFGRID_ASSIGN(out.spec_text, read_file(spec_file, limits::spec_file_bytes));
  PREFGRID_ASSIGN(LoadedDataset data, read_dataset_of(out.spec, spec_file));
  out.dataset = std::move(data.summary);
  out.dataset_bytes = write_dataset(data.dataset);
  out.dataset_digest = digest_of(out.dataset_bytes);
  PREFGRID_ASSIGN(out.plan, make_plan(out.spec, out.dataset, out.dataset_digest, catalog()));
  if (std::string note = left_out_note(out, spec_file); !note.empty()) {
    out.plan.notes.push_back(std::move(note));
  }
  return out;
}

}  // namespace prefgrid
