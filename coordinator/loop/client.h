// The client's side of the control and bulk endpoints, for verbs, tests and scripts. Blocking;
// belongs to one thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/ids.h"
#include "common/result.h"
#include "common/value.h"

namespace prefgrid {

class Client {
 public:
  using Duration = std::chrono::milliseconds;

  // Errors come with the first request: connecting is lazy.
  static Result<Client> connect(const std::string& control_endpoint);
  // The live holder of a store. ErrorCode::not_found: nobody holds it, open it yourself.
  static Result<Client> connect_store(const std::filesystem::path& folder);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Asked again at intervals until the time is up (unavailable): every verb may be repeated.
  Result<Value> request(const std::string& verb, const ValueMap& arguments,
                        Duration timeout = std::chrono::seconds(30));
  // The verb "watch": on_change sees each progress, also the last; false from it ends the watch.
  // unavailable: nothing was heard for `silence`.
  Result<void> watch(const ValueMap& arguments, const std::function<bool(const Value&)>& on_change,
                     Duration silence = std::chrono::seconds(10));

  // Uploads what the store does not have; durable when it returns.
  Result<ArtifactDigest> put_artifact(std::string_view content,
                                      Duration silence = std::chrono::seconds(30));
  Result<std::string> get_artifact(const ArtifactDigest& digest, std::size_t max_bytes,
                                   Duration silence = std::chrono::seconds(30));

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace prefgrid
