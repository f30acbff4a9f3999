#include <memory>

#include "coordinator/cli/verb.h"
#include "experiments/catalog/catalog.h"
#include "experiments/catalog/describe.h"

namespace prefgrid {

VerbAction define_methods(CLI::App& command) {
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print the catalogue as JSON");
  return [json](Output& out) -> int {
    out.print(*json ? methods_json(catalog()) : methods_table(catalog()));
    return exit_done;
  };
}

}  // namespace prefgrid
