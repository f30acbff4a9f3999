// The safetensors format, by mmap. Layout: u64 header length, JSON header, tensor bytes.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "common/result.h"
#include "worker/nn/torch.h"

namespace prefgrid {

using TensorMap = std::map<std::string, at::Tensor>;

// The tensors are copies; the file may go. Errors name file and tensor (truncated, overlapping or
// lying offsets, unknown dtype, duplicate name).
Result<TensorMap> load_safetensors(const std::filesystem::path& file);
// Written to a temporary name, synced, renamed. Contiguous CPU copies are made where needed.
Result<void> save_safetensors(const TensorMap& tensors, const std::filesystem::path& file);

}  // namespace prefgrid
