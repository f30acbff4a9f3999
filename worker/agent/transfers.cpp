#include "worker/agent/transfers.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace prefgrid {

Result<Download> Download::start(const ArtifactDigest& digest, std::uint64_t size,
                                 const std::filesystem::path& file) {
  Download download;
  download.digest_ = digest;
  download.size_ = size;
  download.file_ = file;
  download.out_ = Descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!download.out_) return os_error(errno, "cannot create " + file.string());
  return download;
}

std::optional<BulkGet> Download::poll(MonotonicMs now) {
  if (credit_ > 0 && !timer_.stalled(now)) return std::nullopt;
  if (credit_ > 0) {
    timer_.asked_again(now);
  } else {
    timer_.progressed(now);
  }
  credit_ = limits::chunk_credit;
  return BulkGet{digest_, received_, credit_};
}

Result<bool> Download::on_chunk(const BulkChunk& chunk, MonotonicMs now) {
  if (!chunk.problem.empty()) {
    return Error{ErrorCode::not_found,
                 "the coordinator has no artefact " + digest_.short_hex() + ": " + chunk.problem};
  }
  if (chunk.size != size_) {
    return invalid_input("artefact " + digest_.short_hex() + " should have " +
                         std::to_string(size_) + " bytes, the coordinator sends " +
                         std::to_string(chunk.size));
  }
  if (chunk.offset != received_) return false;  // a repeated one, or one after a lost one
  if (chunk.data.empty() && size_ > 0) return false;
  if (chunk.data.size() > size_ - received_) {
    return invalid_input("artefact " + digest_.short_hex() + " goes on beyond its end");
  }
  PREFGRID_TRY(write_all(out_.get(), chunk.data, file_.string()));
  hash_.update(chunk.data);
  received_ += chunk.data.size();
  if (credit_ > 0) credit_ -= 1;
  timer_.progressed(now);
  if (received_ < size_) return false;
  out_.close();
  if (ArtifactDigest{hash_.finish()} != digest_) {
    return invalid_input("what the coordinator sent as artefact " + digest_.short_hex() +
                         " has another digest");
  }
  return true;
}

Result<Upload> Upload::start(const ArtifactDigest& digest, std::uint64_t size,
                             const std::filesystem::path& file) {
  Upload upload;
  upload.digest_ = digest;
  upload.size_ = size;
  upload.in_ = Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!upload.in_) return os_error(errno, "cannot open " + file.string());
  return upload;
}

Result<std::optional<BulkPut>> Upload::poll(MonotonicMs now) {
  if (started_ && timer_.stalled(now)) {
    sent_ = acknowledged_;
    // All has arrived and no word that it is stored: say the end again, to be told.
    if (sent_ == size_) sent_ -= std::min<std::uint64_t>(limits::chunk_bytes, size_);
    started_ = answered_ = false;
    timer_.asked_again(now);
  }
  const std::uint64_t window = answered_ ? limits::chunk_credit * limits::chunk_bytes : 1;
  const bool may_go = !started_ || (sent_ < size_ && sent_ - acknowledged_ < window);
  if (!may_go) return std::optional<BulkPut>{};
  if (!started_ && timer_.due() == MonotonicMs{}) timer_.progressed(now);
  started_ = true;

  BulkPut put{digest_, size_, sent_, {}};
  put.data.resize(std::min<std::uint64_t>(limits::chunk_bytes, size_ - sent_));
  std::size_t filled = 0;
  while (filled < put.data.size()) {
    const ssize_t count = ::pread(in_.get(), put.data.data() + filled, put.data.size() - filled,
                                  static_cast<off_t>(sent_ + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return os_error(count < 0 ? errno : EIO, "cannot read artefact " + digest_.short_hex());
    }
    filled += static_cast<std::size_t>(count);
  }
  sent_ += put.data.size();
  return std::optional<BulkPut>(std::move(put));
}

Result<bool> Upload::on_ack(const BulkPutAck& ack, MonotonicMs now) {
  if (!ack.problem.empty()) {
    return Error{ErrorCode::io,
                 "the coordinator refused artefact " + digest_.short_hex() + ": " + ack.problem};
  }
  if (ack.complete) return true;
  if (ack.received > size_) {
    return invalid_input("the coordinator acknowledged more than artefact " + digest_.short_hex() +
                         " has");
  }
  if (ack.received != acknowledged_ || !answered_) timer_.progressed(now);
  // Fewer than before: the coordinator started again and lost what was not complete.
  if (ack.received < acknowledged_ || ack.received > sent_) sent_ = ack.received;
  acknowledged_ = ack.received;
  answered_ = true;
  return false;
}

}  // namespace prefgrid
