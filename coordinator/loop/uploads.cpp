#include "coordinator/loop/uploads.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "common/limits.h"
#include "coordinator/store/disk.h"

namespace prefgrid {
namespace {

constexpr auto forgotten_after = std::chrono::hours(24 * 7);
constexpr std::uint64_t room_beside_upload = 16ull << 20;

void remove_forgotten(const std::filesystem::path& folder) {
  std::error_code problem;
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    const auto age = now - entry.last_write_time(problem);
    if (!problem && age > forgotten_after) std::filesystem::remove(entry.path(), problem);
  }
}

std::optional<std::string> refusal(const BulkPut& chunk) {
  if (chunk.size > artifact_bytes) return "an artefact of more than 1 TiB";
  if (chunk.data.size() > limits::chunk_bytes) return "a chunk over the size limit";
  if (chunk.offset > chunk.size || chunk.data.size() > chunk.size - chunk.offset) {
    return "a chunk beyond the artefact's end";
  }
  return std::nullopt;
}

}  // namespace

Uploads::Uploads(Store& store) : store_(store) {
  std::error_code problem;
  std::filesystem::create_directories(store.folder() / "uploads", problem);
  remove_forgotten(store.folder() / "uploads");
}

std::filesystem::path Uploads::part_path(const ArtifactDigest& digest) const {
  return store_.folder() / "uploads" / (digest.hex() + ".part");
}

std::optional<BulkPutAck> Uploads::put(const BulkPut& chunk) {
  BulkPutAck ack{chunk.digest, 0, false, ""};
  if (auto reason = refusal(chunk)) {
    ack.problem = "refused: " + *reason;
    return ack;
  }
  const auto answer = [&](const Result<void>& outcome) -> std::optional<BulkPutAck> {
    if (outcome.ok()) return ack;
    if (outcome.error().code == ErrorCode::out_of_space) {
      store_.note_out_of_space();
      return std::nullopt;
    }
    uploads_.erase(chunk.digest);
    ack.problem = outcome.error().message;
    return ack;
  };
  const auto stored = store_.artifact_size(chunk.digest);
  if (!stored.ok()) return answer(stored.error());
  if (*stored) {
    uploads_.erase(chunk.digest);
    ack.received = **stored;
    ack.complete = true;
    return ack;
  }
  const auto upload = find_or_begin(chunk);
  if (!upload.ok()) return answer(upload.error());
  if (auto appended = append(chunk, **upload); !appended.ok()) return answer(appended);
  ack.received = (*upload)->received;
  if (ack.received < chunk.size) return ack;
  if (auto finished = finish(chunk.digest, **upload); !finished.ok()) return answer(finished);
  uploads_.erase(chunk.digest);
  ack.complete = true;
  return ack;
}

Result<Uploads::Upload*> Uploads::find_or_begin(const BulkPut& chunk) {
  if (const auto found = uploads_.find(chunk.digest); found != uploads_.end()) {
    Upload& upload = found->second;
    if (upload.size != chunk.size) {
      return invalid_input("refused: two sizes for the artefact " + chunk.digest.hex());
    }
    upload.last_use = ++uses_;
    return &upload;
  }
  make_room();
  Upload upload;
  upload.size = chunk.size;
  upload.last_use = ++uses_;
  if (chunk.size > upload_in_memory_bytes) PREFGRID_TRY(resume_file(chunk.digest, upload));
  return &uploads_.emplace(chunk.digest, std::move(upload)).first->second;
}

// What an earlier connection left, digested again: the running digest is not kept on the disk.
Result<void> Uploads::resume_file(const ArtifactDigest& digest, Upload& upload) {
  const std::string path = part_path(digest).string();
  upload.file = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!upload.file) return os_error(errno, "cannot open " + path);
  std::string piece(1 << 20, '\0');
  for (;;) {
    const ssize_t length =
        ::pread(upload.file.get(), piece.data(), piece.size(), static_cast<off_t>(upload.received));
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return os_error(errno, "cannot read " + path);
    if (length == 0) break;
    upload.sum.update(std::string_view(piece).substr(0, static_cast<std::size_t>(length)));
    upload.received += static_cast<std::uint64_t>(length);
  }
  if (upload.received > upload.size) {  // left by a peer that lied about the size
    const std::uint64_t size = upload.size;
    upload = Upload();
    upload.size = size;
    upload.last_use = ++uses_;
    ::unlink(path.c_str());
    return resume_file(digest, upload);
  }
  PREFGRID_ASSIGN(const std::uint64_t free, free_bytes(store_.folder()));
  if (free < upload.size - upload.received + room_beside_upload) {
    return Error{ErrorCode::out_of_space,
                 "no room for an artefact of " + std::to_string(upload.size) + " bytes"};
  }
  return {};
}

Result<void> Uploads::append(const BulkPut& chunk, Upload& upload) {
  // Repeated or ahead of its turn: the acknowledgement says where to go on.
  if (chunk.offset != upload.received || chunk.data.empty()) return {};
  if (!upload.file) {
    upload.content += chunk.data;
  } else {
    std::string_view rest = chunk.data;
    auto offset = static_cast<off_t>(upload.received);
    while (!rest.empty()) {
      const ssize_t written = ::pwrite(upload.file.get(), rest.data(), rest.size(), offset);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const Error error = os_error(errno, "cannot store an artefact");
        [[maybe_unused]] const int cut =
            ::ftruncate(upload.file.get(), static_cast<off_t>(upload.received));
        return error;
      }
      rest.remove_prefix(static_cast<std::size_t>(written));
      offset += written;
    }
  }
  upload.sum.update(chunk.data);
  upload.received += chunk.data.size();
  return {};
}

Result<void> Uploads::finish(const ArtifactDigest& digest, Upload& upload) {
  // Digested once more from the copy: the running digest cannot be read twice, and this may be the
  // second try after a full disk.
  if (!upload.file) {
    if (digest_of(upload.content) != digest) {
      return invalid_input("refused: the content's digest is not " + digest.hex());
    }
    PREFGRID_ASSIGN([[maybe_unused]] const ArtifactDigest stored,
                    store_.put_artifact(upload.content));
    return {};
  }
  const std::filesystem::path part = part_path(digest);
  if (::fsync(upload.file.get()) != 0) return os_error(errno, "cannot sync " + part.string());
  if (upload.sum.finish() != digest.bytes) {
    ::unlink(part.c_str());
    return invalid_input("refused: the content's digest is not " + digest.hex());
  }
  auto adopted = store_.adopt_artifact(digest, upload.size, part);
  if (!adopted.ok()) uploads_.erase(digest);  // begins from the part again: the digest is spent
  return adopted;
}

void Uploads::make_room() {
  if (uploads_.size() < concurrent_uploads) return;
  const auto oldest = std::min_element(uploads_.begin(), uploads_.end(), [](auto& a, auto& b) {
    return a.second.last_use < b.second.last_use;
  });
  uploads_.erase(oldest);  // a large one goes on from its file
}

}  // namespace prefgrid
