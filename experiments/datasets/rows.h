// The catalogue's rows of this folder: the data sets that a spec can name, with their fields.
#pragma once

#include <vector>

#include "experiments/catalog/catalog.h"

namespace prefgrid {

std::vector<DatasetRow> dataset_rows();

}  // namespace prefgrid
