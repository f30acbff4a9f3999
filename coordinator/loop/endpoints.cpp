#include "coordinator/loop/endpoints.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "common/files.h"
#include "common/random.h"

namespace prefgrid {
namespace {

constexpr std::size_t socket_path_bytes = 107;  // sun_path less its final zero
constexpr std::string_view longest_name = "/control";
constexpr std::string_view tcp = "tcp://";

std::string_view host_of(std::string_view endpoint) {
  endpoint.remove_prefix(tcp.size());
  return endpoint.substr(0, endpoint.rfind(':'));
}

std::string hex(std::uint64_t number) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) {
    text.push_back("0123456789abcdef"[(number >> shift) & 15]);
  }
  return text;
}

}  // namespace

bool is_ipc(const std::string& endpoint) {
  return endpoint.starts_with("ipc://");
}

bool is_local(const std::string& endpoint) {
  if (is_ipc(endpoint)) return true;
  if (!endpoint.starts_with(tcp)) return false;
  const std::string_view host = host_of(endpoint);
  return host.starts_with("127.") || host == "[::1]" || host == "localhost" || host == "lo";
}

std::string without_wildcard(const std::string& endpoint) {
  if (!endpoint.starts_with(tcp)) return endpoint;
  const std::string_view host = host_of(endpoint);
  if (host != "0.0.0.0" && host != "[::]" && host != "*") return endpoint;
  return std::string(tcp) + endpoint.substr(endpoint.rfind(':'));
}

std::string bulk_for(const std::string& control, const std::string& bulk) {
  if (!bulk.starts_with("tcp://:") || !control.starts_with(tcp)) return bulk;
  return std::string(tcp).append(host_of(control)).append(bulk.substr(tcp.size()));
}

Result<std::filesystem::path> socket_folder(const std::filesystem::path& store) {
  if (store.string().size() + longest_name.size() <= socket_path_bytes) return store;
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  std::filesystem::path base = runtime != nullptr && *runtime != '\0' ? runtime : "/tmp";
  if (base.string().size() > socket_path_bytes / 2) base = "/tmp";
  const std::filesystem::path folder =
      base / ("prefgrid-" + std::to_string(::getuid()) + "-" + hex(stable_hash(store.string())));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return os_error(errno, "cannot make the folder " + folder.string() + " for sockets");
  }
  struct stat facts {};
  if (::lstat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) ||
      facts.st_uid != ::getuid() || (facts.st_mode & 0077) != 0) {
    return Error{ErrorCode::conflict, "the folder " + folder.string() +
                                          " is somebody else's or open to others: remove it, or "
                                          "give the store a shorter path"};
  }
  return folder;
}

}  // namespace prefgrid
