// Who holds a store: a lock that dies with its process, and DIR/holder.json, which names it for
// people and tells verbs where to reach it. A second coordinator is refused by name; a holder that
// is gone is replaced without any unlock verb.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/files.h"
#include "common/result.h"

namespace prefgrid {

struct HolderRecord {
  std::string host;
  std::string boot_id;  // of the host: process ids and start times restart with it
  std::uint64_t pid = 0;
  std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  std::string control_endpoint;   // the ipc one; "" until the coordinator listens
  std::string network_endpoint;   // the first tcp one, "" if none
  std::string bulk_endpoint;      // the ipc one

  std::string text() const;  // "process 4711 on host gpu3"
};

// Holders on other hosts are judged by their beat: holder.json's time changes while they live.
struct HolderTimes {
  std::chrono::milliseconds beat{2'000};
  std::chrono::milliseconds foreign_wait{7'000};
};

class Holder {
 public:
  // Takes the folder (which exists) or says who has it: ErrorCode::conflict. Waits
  // times.foreign_wait if the record names another host and nobody has the lock.
  static Result<Holder> acquire(const std::filesystem::path& folder, HolderTimes times = {});
  Holder(Holder&&) noexcept = default;
  Holder& operator=(Holder&&) noexcept = default;
  ~Holder();  // removes the record

  Result<void> publish(const std::string& control, const std::string& network,
                       const std::string& bulk);
  void beat() const;  // at least every HolderTimes::beat
  const HolderRecord& record() const { return record_; }

 private:
  Holder(std::filesystem::path folder, Descriptor lock, HolderRecord record);
  std::filesystem::path folder_;
  Descriptor lock_;
  HolderRecord record_;
};

// The live holder, for a verb; nullopt: nobody, the verb opens the store itself. An unreadable
// record is an error.
Result<std::optional<HolderRecord>> live_holder(const std::filesystem::path& folder,
                                                HolderTimes times = {});

}  // namespace prefgrid
