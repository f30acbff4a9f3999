// RocksDB, wrapped: the only file pair that includes it. Families of sorted keys, one synced write.
// Thread-safe for reads and writes; open and close belong to the owner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace prefgrid {

enum class Family { meta, specs, jobs, events, results, artifacts, logs };
const char* to_string(Family family);

struct DatabaseWrite {
  Family family = Family::meta;
  std::string key;
  std::optional<std::string> value;  // nullopt: remove the key
};

class Database {
 public:
  enum class Mode {
    read_only,   // nothing on the disk changes, not even a log file
    read_write,  // of an existing database
    create
  };

  // A write-ahead log whose tail is cut opens at its last whole batch; one with damage before its
  // end, a missing table or manifest is an error that names the file.
  static Result<Database> open(const std::filesystem::path& folder, Mode mode);
  static bool exists(const std::filesystem::path& folder);

  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  Result<std::optional<std::string>> get(Family family, std::string_view key) const;
  // Visits keys >= from in order until the visitor says false or returns an error.
  Result<void> scan(
      Family family, std::string_view from,
      const std::function<Result<bool>(std::string_view, std::string_view)>& visit) const;
  // The greatest key, if there is any.
  Result<std::optional<std::string>> last_key(Family family) const;

  // Reads every block of every table and checks its checksum.
  Result<void> verify() const;

  // One atomic batch, on the disk when this returns. A full disk is ErrorCode::out_of_space; the
  // database takes no more writes until it has been opened anew.
  Result<void> write(const std::vector<DatabaseWrite>& writes);

 private:
  Database();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prefgrid
