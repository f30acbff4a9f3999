#include "worker/nn/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>

#include "common/files.h"
#include "common/text.h"
#include "worker/nn/json_file.h"

namespace prefgrid {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");
constexpr std::uint64_t max_header_bytes = 100'000'000;  // the format's own limit

struct Mapping {
  const char* data = nullptr;
  std::size_t size = 0;

  explicit Mapping(std::size_t bytes, int descriptor) : size(bytes) {
    void* address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address != MAP_FAILED) data = static_cast<const char*>(address);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data != nullptr) ::munmap(const_cast<char*>(data), size);
  }
};

struct Dtype {
  const char* name;
  at::ScalarType type;
};
constexpr Dtype dtypes[] = {{"F32", at::kFloat},     {"F64", at::kDouble}, {"F16", at::kHalf},
                            {"BF16", at::kBFloat16}, {"I64", at::kLong},   {"I32", at::kInt},
                            {"I16", at::kShort},     {"I8", at::kChar},    {"U8", at::kByte},
                            {"BOOL", at::kBool}};

struct Entry {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class Header {
 public:
  Header(std::string file, std::uint64_t data_bytes)
      : file_(std::move(file)), data_bytes_(data_bytes) {}

  Result<std::vector<Entry>> read(const nlohmann::json& json) const {
    std::vector<Entry> entries;
    for (const auto& [name, value] : json.items()) {
      if (name == "__metadata__") continue;
      PREFGRID_ASSIGN(Entry entry, read_entry(name, value));
      entries.push_back(std::move(entry));
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::uint64_t covered = 0;
    for (const Entry& entry : entries) {
      if (entry.begin != covered) {
        return wrong(entry.name, entry.begin < covered ? "overlaps the tensor before it"
                                                       : "leaves a hole before it");
      }
      covered = entry.end;
    }
    if (covered != data_bytes_) {
      return invalid_input(file_ + ": the tensors cover " + std::to_string(covered) + " of " +
                           std::to_string(data_bytes_) +
                           " bytes: the file is truncated or longer "
                           "than it says");
    }
    return entries;
  }

 private:
  Error wrong(const std::string& name, const std::string& problem) const {
    return invalid_input(file_ + ": tensor " + quoted(name, 100) + " " + problem);
  }
  Result<Entry> read_entry(const std::string& name, const nlohmann::json& json) const {
    if (!json.is_object() || !json.contains("dtype") || !json.at("dtype").is_string() ||
        !json.contains("shape") || !json.at("shape").is_array() || !json.contains("data_offsets") ||
        !json.at("data_offsets").is_array()) {
      return wrong(name, "lacks dtype, shape or data_offsets");
    }
    Entry entry;
    entry.name = name;
    const auto& dtype = json.at("dtype").get_ref<const std::string&>();
    const auto* known = std::find_if(std::begin(dtypes), std::end(dtypes),
                                     [&](const Dtype& d) { return dtype == d.name; });
    if (known == std::end(dtypes)) return wrong(name, "has unknown dtype " + quoted(dtype, 20));
    entry.type = known->type;
    std::uint64_t bytes = c10::elementSize(entry.type);
    for (const auto& extent : json.at("shape")) {
      const bool valid = extent.is_number_unsigned();
      const std::uint64_t size = valid ? extent.get<std::uint64_t>() : 0;
      if (!valid || size > (std::uint64_t{1} << 48) ||
          (size != 0 && bytes > std::numeric_limits<std::int64_t>::max() / size)) {
        return wrong(name, "has an impossible shape");
      }
      bytes *= size;
      entry.shape.push_back(static_cast<std::int64_t>(size));
    }
    const auto& offsets = json.at("data_offsets");
    if (entry.shape.size() > 16 || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      return wrong(name, "has impossible offsets");
    }
    entry.begin = offsets[0].get<std::uint64_t>();
    entry.end = offsets[1].get<std::uint64_t>();
    if (entry.begin > entry.end || entry.end > data_bytes_) {
      return wrong(name, "lies outside the file's " + std::to_string(data_bytes_) +
                             " bytes of data: truncated?");
    }
    if (entry.end - entry.begin != bytes) {
      return wrong(name, "needs " + std::to_string(bytes) + " bytes by its shape, has " +
                             std::to_string(entry.end - entry.begin));
    }
    return entry;
  }

  std::string file_;
  std::uint64_t data_bytes_;
};

Result<TensorMap> read_mapping(const Mapping& mapping, const std::string& file) {
  std::uint64_t header_bytes = 0;
  if (mapping.size < sizeof header_bytes) return invalid_input(file + ": truncated in its length");
  std::memcpy(&header_bytes, mapping.data, sizeof header_bytes);
  if (header_bytes > max_header_bytes) {
    return invalid_input(file + ": not a safetensors file: its header would have " +
                         std::to_string(header_bytes) + " bytes");
  }
  if (header_bytes > mapping.size - sizeof header_bytes) {
    return invalid_input(file + ": truncated in its header");
  }
  const std::string_view text(mapping.data + sizeof header_bytes, header_bytes);
  PREFGRID_ASSIGN(const nlohmann::json json, parse_json(text, file + " (header)"));
  if (!json.is_object()) return invalid_input(file + ": its header is no JSON object");
  const std::uint64_t data_at = sizeof header_bytes + header_bytes;
  PREFGRID_ASSIGN(const std::vector<Entry> entries,
                  Header(file, mapping.size - data_at).read(json));
  TensorMap tensors;
  for (const Entry& entry : entries) {
    at::Tensor tensor = at::empty(entry.shape, at::TensorOptions().dtype(entry.type));
    if (entry.end > entry.begin) {
      std::memcpy(tensor.data_ptr(), mapping.data + data_at + entry.begin, entry.end - entry.begin);
    }
    tensors.emplace(entry.name, std::move(tensor));
  }
  return tensors;
}

const char* dtype_name(at::ScalarType type) {
  for (const Dtype& dtype : dtypes) {
    if (dtype.type == type) return dtype.name;
  }
  return nullptr;
}

}  // namespace

Result<TensorMap> load_safetensors(const std::filesystem::path& file) {
  const std::string name = file.string();
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor) return os_error(errno, "cannot open " + name);
  struct stat facts {};
  if (::fstat(descriptor.get(), &facts) != 0) return os_error(errno, "cannot stat " + name);
  if (!S_ISREG(facts.st_mode)) return invalid_input(name + ": not a regular file");
  if (facts.st_size == 0) return invalid_input(name + ": empty");
  const Mapping mapping(static_cast<std::size_t>(facts.st_size), descriptor.get());
  if (mapping.data == nullptr) return os_error(errno, "cannot map " + name);
  try {
    return read_mapping(mapping, name);
  } catch (const c10::Error& error) {  // out of memory
    return Error{ErrorCode::out_of_memory, name + ": " + error.what_without_backtrace()};
  }
}

Result<void> save_safetensors(const TensorMap& tensors, const std::filesystem::path& file) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  // The widest elements first, so that every tensor is aligned to its own.
  std::vector<std::pair<std::string, at::Tensor>> order(tensors.begin(), tensors.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second.element_size() > b.second.element_size();
  });
  for (const auto& [name, tensor] : order) {
    const char* dtype = dtype_name(tensor.scalar_type());
    if (dtype == nullptr) {
      return invalid_input(file.string() + ": tensor " + quoted(name, 100) + " has dtype " +
                           c10::toString(tensor.scalar_type()) + ", which cannot be written");
    }
    const at::Tensor plain = tensor.detach().cpu().contiguous();
    const std::size_t begin = data.size();
    data.append(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
    header[name] = {
        {"dtype", dtype}, {"shape", plain.sizes().vec()}, {"data_offsets", {begin, data.size()}}};
  }
  header["__metadata__"] = {{"format", "pt"}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts at a multiple of 8
  const std::uint64_t header_bytes = text.size();
  std::string content(reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
  content += text;
  content += data;
  return write_file_atomic(file, content);
}

}  // namespace prefgrid
