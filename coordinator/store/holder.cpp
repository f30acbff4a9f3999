#include "coordinator/store/holder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

namespace prefgrid {
namespace {

constexpr std::size_t record_bytes = 16 << 10;

std::filesystem::path record_path(const std::filesystem::path& folder) {
  return folder / "holder.json";
}

std::string first_line(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// Field 22 of /proc/PID/stat; the command in parentheses may itself contain blanks and ")".
std::optional<std::uint64_t> start_ticks(std::uint64_t pid) {
  const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::size_t at = end + 1;
  for (int field = 2; field < 22; ++field) {
    at = line.find(' ', at);
    if (at == std::string::npos) return std::nullopt;
    ++at;
  }
  return std::strtoull(line.c_str() + at, nullptr, 10);
}

HolderRecord own_record() {
  HolderRecord record;
  record.host = host_name();
  record.boot_id = first_line("/proc/sys/kernel/random/boot_id");
  record.pid = static_cast<std::uint64_t>(::getpid());
  record.start_ticks = start_ticks(record.pid).value_or(0);
  return record;
}

std::string to_json(const HolderRecord& record) {
  return nlohmann::json{{"host", record.host},
                        {"boot_id", record.boot_id},
                        {"pid", record.pid},
                        {"start_ticks", record.start_ticks},
                        {"control_endpoint", record.control_endpoint},
                        {"network_endpoint", record.network_endpoint},
                        {"bulk_endpoint", record.bulk_endpoint}}
             .dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

Result<std::optional<HolderRecord>> read_record(const std::filesystem::path& folder) {
  const auto content = read_file(record_path(folder), record_bytes);
  if (!content.ok()) {
    if (content.error().code == ErrorCode::not_found) return std::optional<HolderRecord>();
    return content.error();
  }
  try {
    const auto json = nlohmann::json::parse(*content);
    HolderRecord record;
    json.at("host").get_to(record.host);
    json.at("boot_id").get_to(record.boot_id);
    json.at("pid").get_to(record.pid);
    json.at("start_ticks").get_to(record.start_ticks);
    json.at("control_endpoint").get_to(record.control_endpoint);
    json.at("network_endpoint").get_to(record.network_endpoint);
    json.at("bulk_endpoint").get_to(record.bulk_endpoint);
    return std::optional<HolderRecord>(std::move(record));
  } catch (const nlohmann::json::exception& problem) {
    return invalid_input(record_path(folder).string() + " is not a holder record (" +
                         problem.what() + "): if no coordinator runs here, delete that file");
  }
}

enum class Life { dead, alive, elsewhere };

Life life_of(const HolderRecord& record) {
  const HolderRecord self = own_record();
  if (record.host != self.host) return Life::elsewhere;
  if (record.boot_id != self.boot_id) return Life::dead;  // the host has restarted since
  return start_ticks(record.pid) == record.start_ticks ? Life::alive : Life::dead;
}

// Whether holder.json changes within the time: its holder lives, wherever that is.
bool beats(const std::filesystem::path& folder, std::chrono::milliseconds time) {
  const auto stamp = [&folder]() -> std::pair<std::int64_t, std::int64_t> {
    struct stat facts {};
    if (::stat(record_path(folder).c_str(), &facts) != 0) return {0, 0};
    return {facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
  };
  const auto before = stamp();
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (stamp() != before) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // another host sends no event
  }
  return false;
}

Error held_by(const std::filesystem::path& folder, const std::optional<HolderRecord>& record) {
  return {ErrorCode::conflict,
          "the store " + folder.string() + " is held by " +
              (record ? record->text() : std::string("another process that is just starting")) +
              ": use that coordinator, or stop it first"};
}

}  // namespace

std::string HolderRecord::text() const {
  return "process " + std::to_string(pid) + " on host " + host;
}

Holder::Holder(std::filesystem::path folder, Descriptor lock, HolderRecord record)
    : folder_(std::move(folder)), lock_(std::move(lock)), record_(std::move(record)) {}

Holder::~Holder() {
  if (lock_) ::unlink(record_path(folder_).c_str());
}

Result<Holder> Holder::acquire(const std::filesystem::path& folder, HolderTimes times) {
  const std::string lock_path = (folder / "lock").string();
  Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) return os_error(errno, "cannot open " + lock_path);
  const int problem = ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  const auto present = read_record(folder);
  if (problem != 0) {
    if (problem != EWOULDBLOCK) return os_error(problem, "cannot lock " + lock_path);
    return held_by(folder, present.ok() ? *present : std::nullopt);
  }
  // Some file systems lock within one host only; hence the record decides too. One that cannot be
  // read was torn by a crash of its holder: the lock is ours.
  if (present.ok() && *present) {
    const Life life = life_of(**present);
    const bool same = (*present)->pid == own_record().pid;
    if (life == Life::alive && !same) return held_by(folder, *present);
    if (life == Life::elsewhere && beats(folder, times.foreign_wait)) {
      return held_by(folder, *present);
    }
  }
  Holder holder(folder, std::move(lock), own_record());
  PREFGRID_TRY(holder.publish("", "", ""));
  return holder;
}

Result<void> Holder::publish(const std::string& control, const std::string& network,
                             const std::string& bulk) {
  record_.control_endpoint = control;
  record_.network_endpoint = network;
  record_.bulk_endpoint = bulk;
  return write_file_atomic(record_path(folder_), to_json(record_));
}

void Holder::beat() const {
  ::utimensat(AT_FDCWD, record_path(folder_).c_str(), nullptr, 0);
}

Result<std::optional<HolderRecord>> live_holder(const std::filesystem::path& folder,
                                                HolderTimes times) {
  PREFGRID_ASSIGN(const auto record, read_record(folder));
  if (!record) return std::optional<HolderRecord>();
  switch (life_of(*record)) {
    case Life::alive:
      return record;
    case Life::dead:
      return std::optional<HolderRecord>();
    case Life::elsewhere:
      break;
  }
  if (beats(folder, times.foreign_wait)) return record;
  return std::optional<HolderRecord>();
}

}  // namespace prefgrid
