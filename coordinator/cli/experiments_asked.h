// What a person calls an experiment: its name, the start of its name, its id, or the spec file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/result.h"
#include "coordinator/cli/questions.h"

namespace prefgrid {

inline constexpr const char* experiment_help =
    "The spec file, or the experiment's name, the start of it, or its id (default: the newest of "
    "the store). Without --store and --connect the store is runs/NAME";

struct AskedExperiment {
  Questions questions;
  ValueMap arguments;  // "experiment": its id; nothing if none was named
  std::string name;    // "" if none was named
};

// Opens the store or coordinator, and finds there what `text` names. A spec file is the experiment
// that it made; of several experiments of one name it is else the newest, which is said on stderr.
// Errors name what there is.
Result<AskedExperiment> ask_about(const Target& target, const std::string& text,
                                  Access access = Access::read);

}  // namespace prefgrid
