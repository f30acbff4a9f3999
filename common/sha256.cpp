#include "common/sha256.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "common/files.h"

namespace prefgrid {

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
  bool finished = false;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  PREFGRID_CHECK(state_->context != nullptr, "no memory for a digest context");
  const int started = EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr);
  PREFGRID_CHECK(started == 1, "OpenSSL offers no SHA-256");
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::update(std::string_view data) {
  PREFGRID_CHECK(!state_->finished, "update() after finish()");
  const int updated = EVP_DigestUpdate(state_->context.get(), data.data(), data.size());
  PREFGRID_CHECK(updated == 1, "EVP_DigestUpdate failed");
}

Sha256Bytes Sha256::finish() {
  PREFGRID_CHECK(!state_->finished, "finish() twice");
  state_->finished = true;
  Sha256Bytes bytes;
  const int finished = EVP_DigestFinal_ex(state_->context.get(), bytes.data(), nullptr);
  PREFGRID_CHECK(finished == 1, "EVP_DigestFinal_ex failed");
  return bytes;
}

Sha256Bytes sha256(std::string_view data) {
  Sha256Bytes bytes;
  const int done =
      EVP_Digest(data.data(), data.size(), bytes.data(), nullptr, EVP_sha256(), nullptr);
  PREFGRID_CHECK(done == 1, "EVP_Digest failed");
  return bytes;
}

ArtifactDigest digest_of(std::string_view content) {
  return {sha256(content)};
}

Result<ArtifactDigest> digest_of_file(const std::filesystem::path& file) {
  const std::string name = file.string();
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!descriptor) return os_error(errno, "cannot open " + name);
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) return os_error(errno, "cannot stat " + name);
  if (!S_ISREG(status.st_mode)) return invalid_input(name + " is not a regular file");

  Sha256 hash;
  std::string buffer(256 << 10, '\0');
  for (;;) {
    const ssize_t count = ::read(descriptor.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_error(errno, "cannot read " + name);
    if (count == 0) return ArtifactDigest{hash.finish()};
    hash.update(std::string_view(buffer).substr(0, static_cast<std::size_t>(count)));
  }
}

}  // namespace prefgrid
