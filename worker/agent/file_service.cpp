#include "worker/agent/file_service.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "common/sha256.h"
#include "common/text.h"

namespace prefgrid {
namespace {

namespace fs = std::filesystem;

constexpr int evictions_at_most = 3;

Result<std::uint64_t> output_size(const fs::path& file, const std::string& name) {
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0) {
    return os_error(errno, "the job names an artefact that it did not write, " + quoted(name));
  }
  if (!S_ISREG(status.st_mode)) {
    return invalid_input("artefact " + quoted(name) + " is not a regular file");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

void FileService::prepare(PrepareFiles command, MonotonicMs) {
  Job& job = jobs_[command.ticket];
  job.inputs = std::move(command.inputs);
  look_for_inputs(command.ticket);
}

// True: in the cache. False: to be fetched.
Result<bool> FileService::have(const ArtifactRef& artifact) {
  if (cache_.find(artifact.digest, artifact.size)) return true;
  if (artifact.inline_data) {
    PREFGRID_TRY(cache_.insert(*artifact.inline_data, artifact.digest));
    return true;
  }
  if (artifact.size > 0) return false;
  PREFGRID_TRY(cache_.insert("", artifact.digest));
  return true;
}

void FileService::look_for_inputs(Ticket ticket) {
  Job& job = jobs_.at(ticket);
  for (const ResolvedInput& input : job.inputs) {
    const bool is_job = std::holds_alternative<JobKey>(input.id);
    if (!is_job && input.artifacts.size() != 1) {
      return fail(ticket, invalid_input("input " + quoted(input.name) + " is not one file"));
    }
    for (const ArtifactRef& artifact : input.artifacts) {
      if (is_job && !is_safe_artifact_name(artifact.name)) {
        return fail(ticket, invalid_input("input " + quoted(input.name) +
                                          " has an artefact with the name " +
                                          quoted(artifact.name) + ", which is no relative path"));
      }
      const auto here = have(artifact);
      if (!here) return fail(ticket, here.error());
      if (*here) continue;
      job.missing.insert(artifact.digest);
      Wanted& wanted = downloads_wanted_[artifact.digest];
      if (wanted.waiting.empty()) download_queue_.push_back(artifact.digest);
      wanted.waiting.insert(ticket);
      wanted.size = artifact.size;
    }
  }
  if (job.missing.empty()) finish_inputs(ticket);
}

void FileService::finish_inputs(Ticket ticket) {
  Job& job = jobs_.at(ticket);
  FilesPrepared prepared{ticket, {}};
  for (const ResolvedInput& input : job.inputs) {
    std::vector<fs::path> files;
    for (const ArtifactRef& artifact : input.artifacts) {
      files.push_back(cache_.object_path(artifact.digest));
    }
    auto local = folders_.acquire(input, files);
    if (local) {
      job.acquired.push_back(input.id);
      prepared.inputs.push_back(*std::move(local));
      continue;
    }
    for (const InputRef& id : std::exchange(job.acquired, {})) folders_.release(id);
    const bool evicted = local.error().code == ErrorCode::not_found;
    if (evicted && ++job.evictions <= evictions_at_most) return look_for_inputs(ticket);
    return fail(ticket, local.error());
  }
  reports_.emplace_back(std::move(prepared));
  cache_.shrink(in_use());
}

void FileService::store(StoreFiles command, MonotonicMs) {
  Job& job = jobs_[command.ticket];
  job.storing = Storing{std::move(command.result), {}};
  const auto taken = take_outputs(command.ticket, command.output_dir, job.storing->result);
  if (!taken) return fail(command.ticket, taken.error());
  if (job.storing->uploads.empty()) {
    reports_.emplace_back(FilesStored{command.ticket, std::move(job.storing->result)});
    job.storing.reset();
  }
  cache_.shrink(in_use());
}

// Digests every artefact, moves it into the cache, and inlines it or asks for its upload.
Result<void> FileService::take_outputs(Ticket ticket, const std::string& output_dir,
                                       JobResult& result) {
  std::set<std::string> names;
  std::size_t inline_bytes = 0;
  for (ArtifactRef& artifact : result.artifacts) {
    if (!is_safe_artifact_name(artifact.name) || !names.insert(artifact.name).second) {
      return invalid_input("the job names an artefact " + quoted(artifact.name) +
                           ": names are relative paths, each once");
    }
    const fs::path file = fs::path(output_dir) / artifact.name;
    PREFGRID_ASSIGN(artifact.size, output_size(file, artifact.name));
    artifact.inline_data.reset();
    if (artifact.size <= limits::inline_artifact_bytes &&
        inline_bytes + artifact.size <= limits::result_inline_bytes) {
      PREFGRID_ASSIGN(std::string content, read_file(file, limits::inline_artifact_bytes));
      artifact.size = content.size();
      artifact.digest = digest_of(content);
      artifact.inline_data = std::move(content);
      inline_bytes += artifact.size;
    } else {
      PREFGRID_ASSIGN(artifact.digest, digest_of_file(file));
    }
    PREFGRID_TRY(cache_.adopt(file, artifact.digest, artifact.size));
    if (artifact.inline_data) continue;
    jobs_.at(ticket).storing->uploads.insert(artifact.digest);
    Wanted& wanted = uploads_wanted_[artifact.digest];
    if (wanted.waiting.empty()) upload_queue_.push_back(artifact.digest);
    wanted.waiting.insert(ticket);
    wanted.size = artifact.size;
  }
  return {};
}

void FileService::fail(Ticket ticket, Error error) {
  release(ReleaseFiles{ticket, ""});
  reports_.emplace_back(FilesFailed{ticket, std::move(error)});
}

void FileService::release(const ReleaseFiles& command) {
  if (const auto job = jobs_.find(command.ticket); job != jobs_.end()) {
    for (const InputRef& id : job->second.acquired) folders_.release(id);
    for (const ArtifactDigest& digest : job->second.missing) {
      const auto wanted = downloads_wanted_.find(digest);
      if (wanted == downloads_wanted_.end()) continue;
      wanted->second.waiting.erase(command.ticket);
      if (!wanted->second.waiting.empty()) continue;
      download_ended(digest, std::nullopt);
    }
    if (job->second.storing) {
      for (const ArtifactDigest& digest : job->second.storing->uploads) {
        const auto wanted = uploads_wanted_.find(digest);
        if (wanted == uploads_wanted_.end()) continue;
        wanted->second.waiting.erase(command.ticket);
        if (wanted->second.waiting.empty()) upload_ended(digest, std::nullopt);
      }
    }
    jobs_.erase(job);
  }
  std::error_code ignored;
  if (!command.output_dir.empty()) fs::remove_all(command.output_dir, ignored);
}

void FileService::on_bulk(const BulkMessage& message, MonotonicMs now) {
  if (const auto* chunk = std::get_if<BulkChunk>(&message)) on_chunk(*chunk, now);
  if (const auto* ack = std::get_if<BulkPutAck>(&message)) on_ack(*ack, now);
}

void FileService::on_chunk(const BulkChunk& chunk, MonotonicMs now) {
  const auto found = downloads_.find(chunk.digest);
  if (found == downloads_.end()) return;  // nobody waits for it any more
  const auto whole = found->second.on_chunk(chunk, now);
  if (!whole) return download_ended(chunk.digest, whole.error());
  if (!*whole) return;
  const auto kept = cache_.adopt(found->second.file(), chunk.digest, found->second.size());
  download_ended(chunk.digest, kept ? std::nullopt : std::optional<Error>(kept.error()));
}

void FileService::download_ended(const ArtifactDigest& digest, const std::optional<Error>& error) {
  if (const auto download = downloads_.find(digest); download != downloads_.end()) {
    std::error_code ignored;
    fs::remove(download->second.file(), ignored);  // gone already if it was adopted
    downloads_.erase(download);
  }
  const auto wanted = downloads_wanted_.extract(digest);
  if (!wanted) return;
  for (const Ticket ticket : wanted.mapped().waiting) {
    const auto job = jobs_.find(ticket);
    if (job == jobs_.end()) continue;
    job->second.missing.erase(digest);
    if (error) {
      fail(ticket, *error);
    } else if (job->second.missing.empty()) {
      finish_inputs(ticket);
    }
  }
}

void FileService::on_ack(const BulkPutAck& ack, MonotonicMs now) {
  const auto found = uploads_.find(ack.digest);
  if (found == uploads_.end()) return;
  const auto stored = found->second.on_ack(ack, now);
  if (!stored) {
    upload_ended(ack.digest, stored.error());
  } else if (*stored) {
    upload_ended(ack.digest, std::nullopt);
  }
}

void FileService::upload_ended(const ArtifactDigest& digest, const std::optional<Error>& error) {
  uploads_.erase(digest);
  const auto wanted = uploads_wanted_.extract(digest);
  if (!wanted) return;
  for (const Ticket ticket : wanted.mapped().waiting) {
    const auto job = jobs_.find(ticket);
    if (job == jobs_.end() || !job->second.storing) continue;
    job->second.storing->uploads.erase(digest);
    if (error) {
      fail(ticket, *error);
    } else if (job->second.storing->uploads.empty()) {
      reports_.emplace_back(FilesStored{ticket, std::move(job->second.storing->result)});
      job->second.storing.reset();
    }
  }
}

void FileService::hurry() {
  for (auto& [digest, download] : downloads_) download.hurry();
  for (auto& [digest, upload] : uploads_) upload.hurry();
}

void FileService::start_transfers() {
  while (downloads_.size() < limits::transfers_at_once && !download_queue_.empty()) {
    const ArtifactDigest digest = download_queue_.front();
    download_queue_.pop_front();
    const auto wanted = downloads_wanted_.find(digest);
    if (wanted == downloads_wanted_.end() || downloads_.contains(digest)) continue;
    auto download = Download::start(digest, wanted->second.size, cache_.partial_file());
    if (download) {
      downloads_.emplace(digest, *std::move(download));
    } else {
      download_ended(digest, download.error());
    }
  }
  while (uploads_.size() < limits::transfers_at_once && !upload_queue_.empty()) {
    const ArtifactDigest digest = upload_queue_.front();
    upload_queue_.pop_front();
    const auto wanted = uploads_wanted_.find(digest);
    if (wanted == uploads_wanted_.end() || uploads_.contains(digest)) continue;
    auto upload = Upload::start(digest, wanted->second.size, cache_.object_path(digest));
    if (upload) {
      uploads_.emplace(digest, *std::move(upload));
    } else {
      upload_ended(digest, upload.error());
    }
  }
}

std::vector<BulkMessage> FileService::outgoing(MonotonicMs now) {
  start_transfers();
  std::vector<BulkMessage> messages;
  for (auto& [digest, download] : downloads_) {
    if (auto get = download.poll(now)) messages.emplace_back(*std::move(get));
  }
  std::vector<std::pair<ArtifactDigest, Error>> broken;
  for (auto& [digest, upload] : uploads_) {
    for (std::size_t i = 0; i < limits::chunk_credit; ++i) {
      auto put = upload.poll(now);
      if (!put) broken.emplace_back(digest, put.error());
      if (!put || !put->has_value()) break;
      messages.emplace_back(**std::move(put));
    }
  }
  for (const auto& [digest, error] : broken) upload_ended(digest, error);
  return messages;
}

std::vector<FileReport> FileService::take_reports() {
  return std::exchange(reports_, {});
}

std::optional<MonotonicMs> FileService::next_deadline() const {
  std::optional<MonotonicMs> next;
  const auto consider = [&next](MonotonicMs time) {
    if (!next || time < *next) next = time;
  };
  for (const auto& [digest, download] : downloads_) consider(download.due());
  for (const auto& [digest, upload] : uploads_) consider(upload.due());
  return next;
}

std::set<ArtifactDigest> FileService::in_use() const {
  std::set<ArtifactDigest> digests;
  for (const auto& [ticket, job] : jobs_) {
    for (const ResolvedInput& input : job.inputs) {
      for (const ArtifactRef& artifact : input.artifacts) digests.insert(artifact.digest);
    }
    if (!job.storing) continue;
    digests.insert(job.storing->uploads.begin(), job.storing->uploads.end());
  }
  return digests;
}

}  // namespace prefgrid
