#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "common/messages.h"
#include "coordinator/cli/verb.h"
#include "experiments/catalog/catalog.h"

namespace prefgrid {
namespace {

int print_version(bool json, Output& out) {
  if (!json) {
    std::string text = fmt::format("prefgrid {} (protocol {})\n", PREFGRID_VERSION,
                                   std::uint32_t{protocol_version});
    for (const KindVersion& kind : catalog().kind_versions()) {
      text += fmt::format("  {:<24} {}\n", kind.kind, kind.version);
    }
    out.print(text);
    return exit_done;
  }
  nlohmann::ordered_json object = {{"version", PREFGRID_VERSION}, {"protocol", protocol_version}};
  for (const KindVersion& kind : catalog().kind_versions()) {
    object["kinds"][kind.kind] = kind.version;
  }
  out.print(object.dump(2) + "\n");
  return exit_done;
}

}  // namespace

VerbAction define_version(CLI::App& command) {
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print JSON");
  return [json](Output& out) { return print_version(*json, out); };
}

}  // namespace prefgrid
