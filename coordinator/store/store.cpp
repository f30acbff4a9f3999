#include "coordinator/store/store.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "coordinator/store/disk.h"
#include "coordinator/store/keys.h"

namespace prefgrid {
namespace {

constexpr std::size_t acknowledged_file_bytes = 4'096;
// Room that must be there, with the ballast given up, before a full store opens again.
constexpr std::uint64_t least_room_bytes = ballast_bytes + (16ull << 20);

std::filesystem::path database_path(const std::filesystem::path& folder) {
  return folder / "db";
}

Result<void> check_format(const MetaRecord& meta, const std::filesystem::path& folder) {
  if (meta.format_version <= store_format_version) return {};
  return Error{ErrorCode::conflict,
               "the store " + folder.string() + " has format " +
                   std::to_string(meta.format_version) + ", made by prefgrid " +
                   meta.software_version +
                   "; this program (" PREFGRID_VERSION ") reads up to format " +
                   std::to_string(store_format_version) + ": use the newer program"};
}

}  // namespace

Store::Store(std::filesystem::path folder) : folder_(std::move(folder)) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(const std::filesystem::path& folder, HolderTimes times) {
  PREFGRID_TRY(check_room_to_start(folder));
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) return os_error(problem.value(), "cannot make the store " + folder.string());
  std::unique_ptr<Store> store(new Store(std::filesystem::absolute(folder)));
  PREFGRID_ASSIGN(store->holder_, Holder::acquire(store->folder_, times));
  if (!Database::exists(database_path(store->folder_))) PREFGRID_TRY(store->create());
  const std::string file = (store->folder_ / "acknowledged").string();
  store->acknowledged_ = Descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!store->acknowledged_) return os_error(errno, "cannot open " + file);
  PREFGRID_TRY(store->inspect());
  store->database_.reset();
  PREFGRID_ASSIGN(store->database_,
                  Database::open(database_path(store->folder_), Database::Mode::read_write));
  store->acknowledge();
  hold_ballast(store->folder_);
  for (const std::string& finding : store->findings_) spdlog::warn("{}", finding);
  return store;
}

Result<std::unique_ptr<Store>> Store::open_read_only(const std::filesystem::path& folder) {
  if (!Database::exists(database_path(folder))) {
    return Error{ErrorCode::not_found, "there is no store in " + folder.string()};
  }
  std::unique_ptr<Store> store(new Store(std::filesystem::absolute(folder)));
  const std::string file = (store->folder_ / "acknowledged").string();
  store->acknowledged_ = Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  PREFGRID_TRY(store->inspect());
  return store;
}

// Made beside its place and moved there whole: a crash meanwhile leaves no half-made database.
Result<void> Store::create() {
  const std::filesystem::path unfinished = folder_ / "db.new";
  std::error_code problem;
  std::filesystem::remove_all(unfinished, problem);
  {
    PREFGRID_ASSIGN(Database database, Database::open(unfinished, Database::Mode::create));
    const MetaRecord meta{store_format_version, PREFGRID_VERSION, wall_now()};
    PREFGRID_TRY(database.write(
        {{Family::meta, std::string(meta_key), encode_record(meta)},
         {Family::meta, std::string(sequence_key), encode_record(SequenceRecord{})}}));
  }
  std::filesystem::rename(unfinished, database_path(folder_), problem);
  if (problem) return os_error(problem.value(), "cannot make the store " + folder_.string());
  return sync_folder(folder_);
}

// Everything that may refuse a store is asked of a read-only opening: a refused one stays as it is.
Result<void> Store::inspect() {
  PREFGRID_ASSIGN(database_, Database::open(database_path(folder_), Database::Mode::read_only));
  PREFGRID_ASSIGN(const auto meta, get(Family::meta, meta_key));
  if (!meta) {
    return Error{ErrorCode::io, "the store " + folder_.string() + " has lost its format record"};
  }
  PREFGRID_ASSIGN(const MetaRecord format, decode_meta(*meta));
  PREFGRID_TRY(check_format(format, folder_));
  PREFGRID_TRY(load_sequence());
  PREFGRID_TRY(check_history());
  compare_with_acknowledged();
  return {};
}

Result<void> Store::load_sequence() {
  PREFGRID_ASSIGN(const auto bytes, get(Family::meta, sequence_key));
  if (!bytes) {
    return Error{ErrorCode::io, "the store " + folder_.string() + " has lost its sequence record"};
  }
  PREFGRID_ASSIGN(sequence_, decode_sequence(*bytes));
  return {};
}

// The counts of one batch are written with it: records that are there without the ones before
// them, or are missing, mean that a log or a table has a hole.
Result<void> Store::check_history() const {
  struct Counted {
    Family family;
    std::uint64_t expected;
  };
  const Counted families[] = {{Family::events, sequence_.event_count},
                              {Family::results, sequence_.result_count},
                              {Family::artifacts, sequence_.artifact_count}};
  for (const Counted& counted : families) {
    std::uint64_t present = 0;
    std::uint64_t last = 0;
    PREFGRID_TRY(scan(counted.family, "", [&](std::string_view key, std::string_view) {
      ++present;
      if (counted.family == Family::events) last = number_of_key(key).value_or(0);
      return Result<bool>(true);
    }));
    const bool ends_well = counted.family != Family::events || last == sequence_.last_event;
    if (present == counted.expected && ends_well) continue;
    return Error{ErrorCode::io,
                 "the store's database in " + database_path(folder_).string() + " has " +
                     std::to_string(present) + " " + to_string(counted.family) + " where its " +
                     "sequence record counts " + std::to_string(counted.expected) +
                     ": a write-ahead log (*.log) or a table (*.sst) there has a hole; "
                     "take a copy of that folder, then restore a backup"};
  }
  return {};
}

// DIR/acknowledged is written, not synced, after each batch: it survives a kill, and after a power
// cut it is merely older. So it never says too much, and what it says more than the database has
// is lost from the log's end.
void Store::compare_with_acknowledged() {
  std::string bytes(acknowledged_file_bytes, '\0');
  const ssize_t length = ::pread(acknowledged_.get(), bytes.data(), bytes.size(), 0);
  if (length <= 0) return;
  bytes.resize(static_cast<std::size_t>(length));
  const auto acknowledged = decode_acknowledged(bytes);
  if (!acknowledged || acknowledged->last_event <= sequence_.last_event) return;
  findings_.push_back(
      "the store " + folder_.string() + " has lost the end of its write-ahead log: events " +
      std::to_string(sequence_.last_event + 1) + " to " + std::to_string(acknowledged->last_event) +
      " are gone, and what they recorded will be computed again");
}

void Store::acknowledge() const {
  const std::string bytes =
      encode_acknowledged({sequence_.last_event, sequence_.result_count, sequence_.artifact_count});
  // Not fatal: it only makes a later loss visible.
  if (::pwrite(acknowledged_.get(), bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    spdlog::debug("cannot note the acknowledged sequence number");
  }
}

Result<void> Store::commit(StoreBatch batch) {
  const std::lock_guard lock(write_mutex_);
  PREFGRID_CHECK(!failed_batch_, "a batch before this one waits for room on the disk");
  Result<void> written = out_of_space_ ? Error{ErrorCode::out_of_space, "the disk is still full"}
                                       : commit_locked(batch);
  if (!written.ok() && written.error().code == ErrorCode::out_of_space) {
    failed_batch_ = std::move(batch);
  }
  return written;
}

namespace {

// A failed attempt's log goes to the logs, where it is replaced by the next one's: the history
// keeps the message only.
void append_event(const EventFact& event, std::uint64_t sequence,
                  std::vector<DatabaseWrite>& writes) {
  const auto* const failed = std::get_if<history::Failed>(&event.what);
  if (failed == nullptr || failed->failure.log_tail.empty() || !event.job) {
    writes.push_back({Family::events, number_key(sequence), encode_record(event)});
    return;
  }
  EventFact shortened = event;
  auto& tail = std::get<history::Failed>(shortened.what).failure.log_tail;
  writes.push_back({Family::logs, id_key(*event.job), encode_raw(std::exchange(tail, {}))});
  writes.push_back({Family::events, number_key(sequence), encode_record(shortened)});
}

void append_fact(const Fact& fact, SequenceRecord& sequence, std::vector<DatabaseWrite>& writes) {
  if (const auto* job = std::get_if<JobFact>(&fact)) {
    writes.push_back({Family::jobs, id_key(job->job), encode_record(*job)});
  } else if (const auto* event = std::get_if<EventFact>(&fact)) {
    ++sequence.event_count;
    append_event(*event, ++sequence.last_event, writes);
  } else {
    const auto& result = std::get<ResultFact>(fact);
    ++sequence.result_count;
    writes.push_back({Family::results, id_key(result.job), encode_record(result)});
    if (!result.log.empty()) {
      writes.push_back({Family::logs, id_key(result.job), encode_raw(result.log)});
    }
  }
}

}  // namespace

Result<void> Store::commit_locked(const StoreBatch& batch) {
  std::vector<DatabaseWrite> writes;
  writes.reserve(batch.experiments.size() + batch.facts.size() + 1);
  SequenceRecord after = sequence_;
  for (const ExperimentRecord& experiment : batch.experiments) {
    writes.push_back({Family::specs, number_key(static_cast<std::uint64_t>(experiment.id)),
                      encode_record(experiment)});
  }
  for (const Fact& fact : batch.facts) append_fact(fact, after, writes);
  return write_locked(std::move(writes), after);
}

Result<void> Store::write_locked(std::vector<DatabaseWrite> writes, SequenceRecord after) {
  writes.push_back({Family::meta, std::string(sequence_key), encode_record(after)});
  const std::shared_lock open(open_mutex_);
  if (!database_) return Error{ErrorCode::out_of_space, "the store is closed: its disk is full"};
  const auto written = database_->write(writes);
  if (!written.ok()) {
    if (written.error().code == ErrorCode::out_of_space) out_of_space_ = true;
    return written;
  }
  sequence_ = after;
  acknowledge();
  return {};
}

Result<bool> Store::room_to_go_on() const {
  PREFGRID_ASSIGN(std::uint64_t room, free_bytes(folder_));
  std::error_code missing;
  const auto held = std::filesystem::file_size(folder_ / "ballast", missing);
  if (!missing) room += held;
  return room >= least_room_bytes;
}

void Store::note_out_of_space() {
  const auto enough = room_to_go_on();
  if (!enough.ok() || !*enough) out_of_space_ = true;
}

Result<bool> Store::recover() {
  const std::lock_guard lock(write_mutex_);
  if (out_of_space_) {
    PREFGRID_ASSIGN(const bool enough, room_to_go_on());
    if (!enough) return false;
    drop_ballast(folder_);
    {
      const std::unique_lock open(open_mutex_);
      database_.reset();
      auto reopened = Database::open(database_path(folder_), Database::Mode::read_write);
      if (!reopened.ok()) {
        if (reopened.error().code == ErrorCode::out_of_space) return false;
        return reopened.error();
      }
      database_ = *std::move(reopened);
    }
    const std::uint64_t before = sequence_.last_event;
    PREFGRID_TRY(load_sequence());
    // A batch whose sync failed may be there all the same.
    if (sequence_.last_event > before) failed_batch_.reset();
    out_of_space_ = false;
  }
  if (failed_batch_) {
    const auto written = commit_locked(*failed_batch_);
    if (!written.ok() && written.error().code == ErrorCode::out_of_space) return false;
    PREFGRID_TRY(written);
    failed_batch_.reset();
  }
  hold_ballast(folder_);
  return true;
}

SequenceRecord Store::sequence() const {
  const std::lock_guard lock(write_mutex_);
  return sequence_;
}

}  // namespace prefgrid
