#include "coordinator/cli/prepare.h"

#include <utility>

#include "common/files.h"
#include "common/limits.h"
#include "common/sha256.h"
#include "common/yaml.h"

namespace prefgrid {

Result<PreparedExperiment> prepare(const std::filesystem::path& spec_file) {
  PREFGRID_ASSIGN(YamlNode root, load_yaml(spec_file));
  PreparedExperiment out;
  PREFGRID_ASSIGN(out.spec, parse_spec(root, spec_file.string(), catalog()));
  PREFGRID_ASSIGN(out.spec_text, read_file(spec_file, limits::spec_file_bytes));
  auto loaded = load_dataset(out.spec.dataset);
  if (!loaded) return in_dataset_section(out.spec, loaded.error());
  LoadedDataset data = *std::move(loaded);
  out.dataset = std::move(data.summary);
  out.dataset_bytes = write_dataset(data.dataset);
  out.dataset_digest = digest_of(out.dataset_bytes);
  PREFGRID_ASSIGN(out.plan, make_plan(out.spec, out.dataset, out.dataset_digest, catalog()));
  return out;
}

}  // namespace prefgrid
