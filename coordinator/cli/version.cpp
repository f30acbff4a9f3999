#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/messages.h"
#include "coordinator/cli/verb.h"
#include "experiments/catalog/catalog.h"

namespace prefgrid {
namespace {

int print_version(bool json) {
  if (!json) {
    std::printf("prefgrid %s (protocol %u)\n", PREFGRID_VERSION, protocol_version);
    for (const KindVersion& kind : catalog().kind_versions()) {
      std::printf("  %-24s %u\n", kind.kind.c_str(), kind.version);
    }
    return exit_done;
  }
  nlohmann::ordered_json out = {{"version", PREFGRID_VERSION}, {"protocol", protocol_version}};
  for (const KindVersion& kind : catalog().kind_versions()) out["kinds"][kind.kind] = kind.version;
  std::printf("%s\n", out.dump(2).c_str());
  return exit_done;
}

}  // namespace

VerbAction define_version(CLI::App& command) {
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print JSON");
  return [json] { return print_version(*json); };
}

}  // namespace prefgrid
