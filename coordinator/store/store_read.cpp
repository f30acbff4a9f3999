// The reading side of the store, and its artefacts.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/sha256.h"
#include "coordinator/store/keys.h"
#include "coordinator/store/store.h"

namespace prefgrid {
namespace {

// Content up to this size lies in the database (blob files), more in a file of its own.
constexpr std::size_t artifact_in_database_bytes = 1 << 20;

std::filesystem::path artifact_path(const std::filesystem::path& folder,
                                    const ArtifactDigest& digest) {
  const std::string hex = digest.hex();
  return folder / "artifacts" / hex.substr(0, 2) / hex;
}

Error in_record(const Error& error, Family family, const std::string& name) {
  return {error.code,
          std::string("record ") + name + " of " + to_string(family) + ": " + error.message};
}

Error unknown_artifact(const ArtifactDigest& digest) {
  return {ErrorCode::not_found, "the store has no artefact " + digest.hex()};
}

Result<std::string> read_range(const std::filesystem::path& file, std::uint64_t size,
                               std::uint64_t offset, std::size_t max_bytes) {
  const Descriptor source(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source) return os_error(errno, "cannot open the artefact " + file.string());
  std::string content(std::min<std::uint64_t>(max_bytes, size - std::min(size, offset)), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t length = ::pread(source.get(), content.data() + done, content.size() - done,
                                   static_cast<off_t>(offset + done));
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return os_error(errno, "cannot read the artefact " + file.string());
    if (length == 0) {
      return Error{ErrorCode::io, "the artefact " + file.string() + " is shorter than recorded"};
    }
    done += static_cast<std::size_t>(length);
  }
  return content;
}

}  // namespace

Result<std::optional<std::string>> Store::get(Family family, std::string_view key) const {
  const std::shared_lock open(open_mutex_);
  if (!database_) return Error{ErrorCode::out_of_space, "the store is closed: its disk is full"};
  return database_->get(family, key);
}

Result<void> Store::scan(
    Family family, std::string_view from,
    const std::function<Result<bool>(std::string_view, std::string_view)>& visit) const {
  const std::shared_lock open(open_mutex_);
  if (!database_) return Error{ErrorCode::out_of_space, "the store is closed: its disk is full"};
  return database_->scan(family, from, visit);
}

Result<std::vector<ExperimentRecord>> Store::experiments() const {
  std::vector<ExperimentRecord> all;
  PREFGRID_TRY(scan(Family::specs, "", [&all](std::string_view key, std::string_view value) {
    auto experiment = decode_experiment(value);
    if (!experiment.ok()) {
      const auto number = number_of_key(key);
      return Result<bool>(
          in_record(experiment.error(), Family::specs, std::to_string(number.value_or(0))));
    }
    all.push_back(*std::move(experiment));
    return Result<bool>(true);
  }));
  return all;
}

Result<std::optional<JobFact>> Store::job(const JobKey& key) const {
  PREFGRID_ASSIGN(const auto bytes, get(Family::jobs, id_key(key)));
  if (!bytes) return std::optional<JobFact>();
  auto fact = decode_job(key, *bytes);
  if (!fact.ok()) return in_record(fact.error(), Family::jobs, key.hex());
  return std::optional<JobFact>(*std::move(fact));
}

Result<void> Store::each_job(const std::function<Result<bool>(const JobFact&)>& visit) const {
  return scan(Family::jobs, "", [&](std::string_view name, std::string_view value) {
    const auto key = id_of_key<JobKey>(name);
    if (!key) return Result<bool>(Error{ErrorCode::io, "a job's record has a damaged key"});
    const auto fact = decode_job(*key, value);
    if (!fact.ok()) return Result<bool>(in_record(fact.error(), Family::jobs, key->hex()));
    return visit(*fact);
  });
}

Result<std::optional<ResultFact>> Store::result(const JobKey& key) const {
  PREFGRID_ASSIGN(const auto bytes, get(Family::results, id_key(key)));
  if (!bytes) return std::optional<ResultFact>();
  auto fact = decode_result(key, *bytes);
  if (!fact.ok()) return in_record(fact.error(), Family::results, key.hex());
  return std::optional<ResultFact>(*std::move(fact));
}

Result<void> Store::each_result(const std::function<Result<bool>(const ResultFact&)>& visit) const {
  return scan(Family::results, "", [&](std::string_view name, std::string_view value) {
    const auto key = id_of_key<JobKey>(name);
    if (!key) return Result<bool>(Error{ErrorCode::io, "a result's record has a damaged key"});
    const auto fact = decode_result(*key, value);
    if (!fact.ok()) return Result<bool>(in_record(fact.error(), Family::results, key->hex()));
    return visit(*fact);
  });
}

Result<std::vector<StoredEvent>> Store::events_of(const JobKey& key) const {
  std::vector<StoredEvent> events;
  const std::string needle = id_key(key);
  PREFGRID_TRY(scan(Family::events, "", [&](std::string_view name, std::string_view value) {
    if (value.find(needle) == std::string_view::npos) return Result<bool>(true);
    auto event = decode_event(value);
    const std::uint64_t number = number_of_key(name).value_or(0);
    if (!event.ok()) {
      return Result<bool>(in_record(event.error(), Family::events, std::to_string(number)));
    }
    if (event->job == key) events.push_back({number, *std::move(event)});
    return Result<bool>(true);
  }));
  return events;
}

Result<void> Store::each_event(std::uint64_t from_sequence,
                               const std::function<Result<bool>(const StoredEvent&)>& visit) const {
  return scan(
      Family::events, number_key(from_sequence),
      [&](std::string_view name, std::string_view value) {
        auto event = decode_event(value);
        const std::uint64_t number = number_of_key(name).value_or(0);
        if (!event.ok()) {
          return Result<bool>(in_record(event.error(), Family::events, std::to_string(number)));
        }
        return visit({number, *std::move(event)});
      });
}

Result<std::optional<std::string>> Store::log(const JobKey& key) const {
  PREFGRID_ASSIGN(const auto bytes, get(Family::logs, id_key(key)));
  if (!bytes) return std::optional<std::string>();
  auto text = decode_raw(*bytes);
  if (!text.ok()) return in_record(text.error(), Family::logs, key.hex());
  return std::optional<std::string>(*std::move(text));
}

Result<std::optional<std::uint64_t>> Store::artifact_size(const ArtifactDigest& digest) const {
  PREFGRID_ASSIGN(const auto bytes, get(Family::artifacts, id_key(digest)));
  if (!bytes) return std::optional<std::uint64_t>();
  const auto place = decode_place(*bytes);
  if (!place.ok()) return in_record(place.error(), Family::artifacts, digest.hex());
  return std::optional<std::uint64_t>(place->size);
}

Result<std::string> Store::read_artifact(const ArtifactDigest& digest, std::uint64_t offset,
                                         std::size_t max_bytes) const {
  PREFGRID_ASSIGN(const auto bytes, get(Family::artifacts, id_key(digest)));
  if (!bytes) return unknown_artifact(digest);
  const auto place = decode_place(*bytes);
  if (!place.ok()) return in_record(place.error(), Family::artifacts, digest.hex());
  if (place->in_file) {
    return read_range(artifact_path(folder_, digest), place->size, offset, max_bytes);
  }
  if (offset >= place->size) return std::string();
  return std::string(place->content.substr(offset, max_bytes));
}

Result<std::string> Store::artifact(const ArtifactDigest& digest, std::size_t max_bytes) const {
  PREFGRID_ASSIGN(const auto size, artifact_size(digest));
  if (!size) return unknown_artifact(digest);
  if (*size > max_bytes) {
    return Error{ErrorCode::invalid_input, "the artefact " + digest.hex() + " has " +
                                               std::to_string(*size) + " bytes, more than the " +
                                               std::to_string(max_bytes) + " that fit here"};
  }
  PREFGRID_ASSIGN(std::string content, read_artifact(digest, 0, max_bytes));
  if (digest_of(content) != digest) {
    return Error{ErrorCode::io, "the artefact " + digest.hex() + " in " + folder_.string() +
                                    " is damaged: its content has another digest"};
  }
  return content;
}

Result<ArtifactDigest> Store::put_artifact(std::string_view content) {
  const ArtifactDigest digest = digest_of(content);
  if (content.size() <= artifact_in_database_bytes) {
    PREFGRID_TRY(put_artifact_record(digest, encode_place(content)));
    return digest;
  }
  PREFGRID_ASSIGN(const auto present, artifact_size(digest));
  if (present) return digest;
  const std::filesystem::path file = folder_ / "uploads" / (digest.hex() + ".put");
  std::error_code problem;
  std::filesystem::create_directories(file.parent_path(), problem);
  if (problem) return os_error(problem.value(), "cannot make " + file.parent_path().string());
  PREFGRID_TRY(write_file_atomic(file, content));
  PREFGRID_TRY(adopt_artifact(digest, content.size(), file));
  return digest;
}

// The file is in place before its record is: a record never names a file that is not there.
Result<void> Store::adopt_artifact(const ArtifactDigest& digest, std::uint64_t size,
                                   const std::filesystem::path& file) {
  if (size <= artifact_in_database_bytes) {
    PREFGRID_ASSIGN(const std::string content, read_file(file, artifact_in_database_bytes));
    PREFGRID_TRY(put_artifact_record(digest, encode_place(content)));
    ::unlink(file.c_str());
    return {};
  }
  const std::filesystem::path target = artifact_path(folder_, digest);
  std::error_code problem;
  std::filesystem::create_directories(target.parent_path(), problem);
  if (!problem) std::filesystem::rename(file, target, problem);
  if (problem) return os_error(problem.value(), "cannot move " + file.string() + " to its place");
  PREFGRID_TRY(sync_folder(target.parent_path()));
  PREFGRID_TRY(sync_folder(target.parent_path().parent_path()));
  auto recorded = put_artifact_record(digest, encode_place(size));
  if (!recorded.ok()) std::filesystem::rename(target, file, problem);  // for another try
  return recorded;
}

Result<void> Store::put_artifact_record(const ArtifactDigest& digest, std::string value) {
  const std::lock_guard lock(write_mutex_);
  if (out_of_space_) return Error{ErrorCode::out_of_space, "the disk is still full"};
  PREFGRID_ASSIGN(const auto present, artifact_size(digest));
  if (present) return {};
  SequenceRecord after = sequence_;
  ++after.artifact_count;
  return write_locked({{Family::artifacts, id_key(digest), std::move(value)}}, after);
}

}  // namespace prefgrid
