// Names of endpoints: where a store's sockets lie, and what a peer makes of a bulk endpoint.
// Pure but for the fallback folder that socket_folder may make.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.h"

namespace prefgrid {

// The folder of the ipc sockets: the store's own, or, where its path is too long for a socket
// address (107 bytes), a private one in $XDG_RUNTIME_DIR or /tmp that is named after it.
Result<std::filesystem::path> socket_folder(const std::filesystem::path& store);

// "tcp://0.0.0.0:7700" as the peer must see it: "tcp://:7700", the host of its control endpoint.
std::string without_wildcard(const std::string& endpoint);
// The bulk endpoint of a Welcome, for whoever reached the coordinator at `control`.
std::string bulk_for(const std::string& control, const std::string& bulk);

bool is_ipc(const std::string& endpoint);
// ipc, 127.0.0.0/8, ::1 or localhost: nobody else's machine can connect.
bool is_local(const std::string& endpoint);

}  // namespace prefgrid
