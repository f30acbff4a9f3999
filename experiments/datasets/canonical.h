// The canonical file's reader with all its choices; read_dataset is the strict one. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"
#include "experiments/datasets/records.h"

namespace prefgrid {

// Reads lines into records, checking each line by itself. A bad line is an error that names file,
// line and field, or is skipped and counted; a bad header, user record or byte order mark is always
// an error.
Result<Records> read_records(std::string_view json_lines, const std::string& file_name,
                             OnBadRow on_bad_row);

}  // namespace prefgrid
