#include "experiments/datasets/text_file.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "common/files.h"

namespace prefgrid {
namespace {

Error too_large(const std::filesystem::path& file, std::uint64_t max_bytes) {
  return invalid_input(file.string() + ": unpacks to more than " + std::to_string(max_bytes) +
                       " bytes; split the data set");
}

struct InflateEnd {
  void operator()(z_stream* stream) const {
    inflateEnd(stream);
    delete stream;
  }
};

// Concatenated gzip members are one text, as for gunzip.
Result<std::string> gunzip(std::string_view packed, const std::filesystem::path& file,
                           std::uint64_t max_bytes) {
  std::unique_ptr<z_stream, InflateEnd> stream(std::make_unique<z_stream>().release());
  if (inflateInit2(stream.get(), 15 + 16) != Z_OK) {  // 16: a gzip header, nothing else
    return Error{ErrorCode::internal, file.string() + ": zlib does not start"};
  }
  std::string text;
  std::string block(1 << 18, '\0');
  std::string_view rest = packed;
  while (true) {
    const auto chunk = static_cast<uInt>(std::min<std::size_t>(rest.size(), 1 << 30));
    stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));  // not written to
    stream->avail_in = chunk;
    stream->next_out = reinterpret_cast<Bytef*>(block.data());
    stream->avail_out = static_cast<uInt>(block.size());
    const int status = inflate(stream.get(), Z_NO_FLUSH);
    rest.remove_prefix(chunk - stream->avail_in);
    const std::size_t made = block.size() - stream->avail_out;
    if (text.size() + made > max_bytes) return too_large(file, max_bytes);
    text.append(block, 0, made);
    if (status == Z_STREAM_END) {
      if (rest.empty()) return text;
      inflateReset(stream.get());
    } else if (status == Z_BUF_ERROR || (status == Z_OK && made == 0 && rest.empty())) {
      return invalid_input(file.string() + ": the gzip data ends early; fetch the file again");
    } else if (status != Z_OK) {
      return invalid_input(file.string() + ": damaged gzip data; fetch the file again");
    }
  }
}

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& file, std::uint64_t max_bytes) {
  Result<std::string> content = read_file(file, max_bytes);
  if (!content.ok() || !content->starts_with("\x1f\x8b")) return content;
  return gunzip(*content, file, max_bytes);
}

}  // namespace prefgrid
