#include "coordinator/store/database.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace prefgrid {
namespace {

constexpr std::array families{Family::meta,    Family::specs,     Family::jobs, Family::events,
                              Family::results, Family::artifacts, Family::logs};

// Small, so that what a reopening has to flush fits into the ballast (store.h); below some MiB
// RocksDB throttles writers.
constexpr std::size_t write_buffer_bytes = 8 << 20;
constexpr std::size_t all_write_buffers_bytes = 16 << 20;
constexpr std::size_t write_ahead_log_bytes = 24 << 20;
constexpr std::size_t block_cache_bytes = 64 << 20;
constexpr std::size_t blob_threshold_bytes = 4 << 10;

// RocksDB's own log goes to ours: in the database's folder it aborts the process on a full disk.
class InfoLog : public rocksdb::Logger {
 public:
  InfoLog() : Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}
  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    std::array<char, 512> text{};
    std::vsnprintf(text.data(), text.size(), format, arguments);
    spdlog::debug("rocksdb: {}", text.data());
  }
};

Error error_of(const rocksdb::Status& status, const std::filesystem::path& folder) {
  const std::string text = status.ToString();
  if (status.IsNoSpace() || text.find("No space left") != std::string::npos) {
    return {ErrorCode::out_of_space, "the disk that holds " + folder.string() + " is full"};
  }
  if (status.IsCorruption()) {
    return {ErrorCode::io, "the store's database in " + folder.string() + " is damaged: " + text};
  }
  return {ErrorCode::io, "the store's database in " + folder.string() + ": " + text};
}

rocksdb::DBOptions database_options(Database::Mode mode) {
  rocksdb::DBOptions options;
  options.create_if_missing = mode == Database::Mode::create;
  options.create_missing_column_families = mode == Database::Mode::create;
  options.error_if_exists = mode == Database::Mode::create;
  options.info_log = std::make_shared<InfoLog>();
  options.paranoid_checks = true;
  // Refuses damage before the log's end, takes a cut end; the default mode takes both.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.track_and_verify_wals_in_manifest = true;
  options.atomic_flush = true;  // all families stand at one point of the history
  options.db_write_buffer_size = all_write_buffers_bytes;
  options.max_total_wal_size = write_ahead_log_bytes;
  options.max_open_files = 256;
  options.max_background_jobs = 2;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.recycle_log_file_num = 0;  // old bytes behind the tail would look like records
  return options;
}

rocksdb::ColumnFamilyOptions family_options(Family family,
                                            const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options;
  options.write_buffer_size = write_buffer_bytes;
  options.max_write_buffer_number = 2;
  options.compression = rocksdb::kNoCompression;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  if (family == Family::artifacts) {
    options.enable_blob_files = true;
    options.min_blob_size = blob_threshold_bytes;
    options.enable_blob_garbage_collection = true;
  }
  return options;
}

}  // namespace

const char* to_string(Family family) {
  switch (family) {
    case Family::meta:
      return "meta";
    case Family::specs:
      return "specs";
    case Family::jobs:
      return "jobs";
    case Family::events:
      return "events";
    case Family::results:
      return "results";
    case Family::artifacts:
      return "artifacts";
    case Family::logs:
      return "logs";
  }
  return "unknown";
}

struct Database::Impl {
  std::filesystem::path folder;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;  // the default family, then `families`

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (!db) return;
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    db->Close();
  }
  rocksdb::ColumnFamilyHandle* handle(Family family) const {
    return handles[static_cast<std::size_t>(family) + 1];
  }
};

Database::Database() : impl_(std::make_unique<Impl>()) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

bool Database::exists(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "CURRENT", ignored);
}

Result<Database> Database::open(const std::filesystem::path& folder, Mode mode) {
  const auto cache = rocksdb::NewLRUCache(block_cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors{
      {rocksdb::kDefaultColumnFamilyName, family_options(Family::meta, cache)}};
  for (const Family family : families) {
    descriptors.emplace_back(to_string(family), family_options(family, cache));
  }
  Database database;
  database.impl_->folder = folder;
  rocksdb::DB* opened = nullptr;
  const auto options = database_options(mode);
  const auto status = mode == Mode::read_only
                          ? rocksdb::DB::OpenForReadOnly(options, folder.string(), descriptors,
                                                         &database.impl_->handles, &opened)
                          : rocksdb::DB::Open(options, folder.string(), descriptors,
                                              &database.impl_->handles, &opened);
  database.impl_->db.reset(opened);
  if (!status.ok()) return error_of(status, folder);
  return database;
}

Result<std::optional<std::string>> Database::get(Family family, std::string_view key) const {
  std::string value;
  const auto status = impl_->db->Get({}, impl_->handle(family), rocksdb::Slice(key), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return error_of(status, impl_->folder);
  return std::optional<std::string>(std::move(value));
}

Result<void> Database::scan(
    Family family, std::string_view from,
    const std::function<Result<bool>(std::string_view, std::string_view)>& visit) const {
  const std::unique_ptr<rocksdb::Iterator> iterator(
      impl_->db->NewIterator({}, impl_->handle(family)));
  for (iterator->Seek(rocksdb::Slice(from)); iterator->Valid(); iterator->Next()) {
    PREFGRID_ASSIGN(const bool more,
                    visit(iterator->key().ToStringView(), iterator->value().ToStringView()));
    if (!more) return {};
  }
  if (!iterator->status().ok()) return error_of(iterator->status(), impl_->folder);
  return {};
}

Result<std::optional<std::string>> Database::last_key(Family family) const {
  const std::unique_ptr<rocksdb::Iterator> iterator(
      impl_->db->NewIterator({}, impl_->handle(family)));
  iterator->SeekToLast();
  if (iterator->Valid()) return std::optional<std::string>(iterator->key().ToString());
  if (!iterator->status().ok()) return error_of(iterator->status(), impl_->folder);
  return std::optional<std::string>();
}

Result<void> Database::verify() const {
  const auto status = impl_->db->VerifyChecksum();
  if (!status.ok()) return error_of(status, impl_->folder);
  return {};
}

Result<void> Database::write(const std::vector<DatabaseWrite>& writes) {
  rocksdb::WriteBatch batch;
  for (const DatabaseWrite& write : writes) {
    auto* const handle = impl_->handle(write.family);
    const auto status =
        write.value ? batch.Put(handle, write.key, *write.value) : batch.Delete(handle, write.key);
    if (!status.ok()) return error_of(status, impl_->folder);
  }
  rocksdb::WriteOptions options;
  options.sync = true;
  const auto status = impl_->db->Write(options, &batch);
  if (!status.ok()) return error_of(status, impl_->folder);
  return {};
}

}  // namespace prefgrid
