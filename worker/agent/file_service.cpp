#include "worker/agent/file_service.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "common/sha256.h"
#include "common/text.h"
#include "worker/agent/disk_room.h"

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

FileService::FileService(ArtifactCache cache, JobFolders folders, RoomProbe room)
    : cache_(std::move(cache)), folders_(std::move(folders)), room_(std::move(room)) {
  if (!room_) room_ = [folder = cache_.folder() / "partial"] { return room_in(folder); };
}

void FileService::prepare(PrepareFiles command, MonotonicMs now) {
  now_ = now;
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

void FileService::store(StoreFiles command, MonotonicMs now) {
  now_ = now;
  Storing storing;
  storing.output_dir = std::move(command.output_dir);
  storing.result = std::move(command.result);
  jobs_[command.ticket].storing = std::move(storing);
  go_on_storing(command.ticket);
}

void FileService::go_on_storing(Ticket ticket) {
  const auto taken = take_outputs(ticket);
  if (!taken && taken.error().code == ErrorCode::out_of_space) {
    stalled_.insert(ticket);
    return lose_room(taken.error().message);
  }
  if (!taken) return fail(ticket, taken.error());
  Job& job = jobs_.at(ticket);
  if (job.storing->uploads.empty()) {
    reports_.emplace_back(FilesStored{ticket, std::move(job.storing->result)});
    job.storing.reset();
  }
  cache_.shrink(in_use());
}

// From where it was when the disk had no more room.
Result<void> FileService::take_outputs(Ticket ticket) {
  Storing& storing = *jobs_.at(ticket).storing;
  std::vector<ArtifactRef>& artifacts = storing.result.artifacts;
  std::set<std::string> names;
  for (const ArtifactRef& artifact : artifacts) {
    if (!is_safe_artifact_name(artifact.name) || !names.insert(artifact.name).second) {
      return invalid_input("the job names an artefact " + quoted(artifact.name) +
                           ": names are relative paths, each once");
    }
  }
  for (; storing.taken < artifacts.size(); ++storing.taken) {
    PREFGRID_TRY(take_output(ticket, artifacts[storing.taken]));
  }
  return {};
}

// Digests it, moves it into the cache, and inlines it or asks for its upload.
Result<void> FileService::take_output(Ticket ticket, ArtifactRef& artifact) {
  Storing& storing = *jobs_.at(ticket).storing;
  const fs::path file = fs::path(storing.output_dir) / artifact.name;
  PREFGRID_ASSIGN(artifact.size, output_size(file, artifact.name));
  artifact.inline_data.reset();
  if (artifact.size <= limits::inline_artifact_bytes &&
      storing.inline_bytes + artifact.size <= limits::result_inline_bytes) {
    PREFGRID_ASSIGN(std::string content, read_file(file, limits::inline_artifact_bytes));
    artifact.size = content.size();
    artifact.digest = digest_of(content);
    artifact.inline_data = std::move(content);
  } else {
    PREFGRID_ASSIGN(artifact.digest, digest_of_file(file));
  }
  PREFGRID_TRY(cache_.adopt(file, artifact.digest, artifact.size));
  if (artifact.inline_data) {
    storing.inline_bytes += artifact.size;
    return {};
  }
  storing.uploads.insert(artifact.digest);
  Wanted& wanted = uploads_wanted_[artifact.digest];
  if (wanted.waiting.empty()) upload_queue_.push_back(artifact.digest);
  wanted.waiting.insert(ticket);
  wanted.size = artifact.size;
  return {};
}

void FileService::judge(const JudgeFailure& command, MonotonicMs now) {
  now_ = now;
  const std::uint64_t room = room_();
  const bool no_room =
      room < limits::least_room_bytes || (command.says_no_room && room < limits::ample_room_bytes);
  if (no_room) lose_room("a job found no room");
  reports_.emplace_back(FailureJudged{command.ticket, no_room});
}

void FileService::lose_room(const std::string& reason) {
  if (next_look_) return;
  const bool soon = found_room_ && now_ - *found_room_ < limits::room_lasts_ms;
  patience_ms_ = soon ? std::min(2 * patience_ms_, limits::room_max_ms) : limits::room_first_ms;
  next_look_ = now_ + patience_ms_;
  cache_.give_way(in_use());
  reports_.emplace_back(
      RoomLost{"the disk of " + cache_.folder().string() + " is full (" + reason + ")"});
}

void FileService::look_for_room(MonotonicMs now) {
  now_ = now;
  if (!next_look_ || now - *next_look_ < 0) return;
  if (room_() < limits::least_room_bytes) {
    next_look_ = now + limits::room_first_ms;
    return;
  }
  next_look_.reset();
  found_room_ = now;
  reports_.emplace_back(RoomFound{});
  for (const Ticket ticket : std::exchange(stalled_, {})) {
    const auto job = jobs_.find(ticket);
    if (job != jobs_.end() && job->second.storing) go_on_storing(ticket);
  }
}

void FileService::fail(Ticket ticket, Error error) {
  if (error.code == ErrorCode::out_of_space) lose_room(error.message);
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
  now_ = now;
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
  now_ = now;
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
  if (next_look_) consider(*next_look_);
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
