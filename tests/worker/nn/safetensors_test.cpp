#include "worker/nn/safetensors.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/support/temp_dir.h"

namespace prefgrid {
namespace {

TensorMap sample() {
  return {{"a", at::arange(6, at::kFloat).view({2, 3})},
          {"half", at::tensor({1.5F, -2.0F}).to(at::kHalf)},
          {"brain", at::tensor({0.25F, 3.0F, 8.0F}).to(at::kBFloat16)},
          {"count", at::arange(3, at::kLong)},
          {"flag", at::tensor({1, 0, 1}).to(at::kBool)},
          {"nothing", at::empty({0, 4}, at::kFloat)},
          {"scalar", at::scalar_tensor(7.0)}};
}

std::string slurp(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Header text and data as a file's bytes.
std::string file_bytes(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t size = header.size();
  std::string text(reinterpret_cast<const char*>(&size), sizeof size);
  return text + header + std::string(data_bytes, '\0');
}

std::string refusal(const TempDir& dir, const std::string& bytes) {
  auto result = load_safetensors(dir.write("x.safetensors", bytes));
  REQUIRE(!result.ok());
  CHECK(result.error().message.find("x.safetensors") != std::string::npos);
  return result.error().message;
}

}  // namespace

TEST_CASE("tensors of every dtype come back as they were written") {
  const TempDir dir;
  const TensorMap written = sample();
  REQUIRE(save_safetensors(written, dir.path() / "t.safetensors").ok());
  auto read = load_safetensors(dir.path() / "t.safetensors");
  REQUIRE(read.ok());
  REQUIRE(read->size() == written.size());
  for (const auto& [name, tensor] : written) {
    CAPTURE(name);
    const at::Tensor& other = read->at(name);
    CHECK((other.scalar_type() == tensor.scalar_type()));
    CHECK((other.sizes() == tensor.sizes()));
    CHECK(std::memcmp(other.data_ptr(), tensor.data_ptr(), tensor.nbytes()) == 0);
  }
  // A view with strides is written by its values.
  REQUIRE(save_safetensors({{"t", written.at("a").t()}}, dir.path() / "t.safetensors").ok());
  auto transposed = load_safetensors(dir.path() / "t.safetensors");
  REQUIRE(transposed.ok());
  CHECK(at::equal(transposed->at("t"), written.at("a").t()));
}

TEST_CASE("a file cut at any length is refused") {
  const TempDir dir;
  REQUIRE(save_safetensors(sample(), dir.path() / "t.safetensors").ok());
  const std::string whole = slurp(dir.path() / "t.safetensors");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(!load_safetensors(dir.write("cut", whole.substr(0, size))).ok());
  }
  CHECK(!load_safetensors(dir.write("long", whole + "x")).ok());
  CHECK(load_safetensors(dir.write("same", whole)).ok());
}

TEST_CASE("a lying header is refused by name") {
  const TempDir dir;
  const auto entry = [](const std::string& shape, const std::string& offsets,
                        const std::string& dtype = "F32") {
    return R"("x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}";
  };
  const auto one = [&](const std::string& body, std::size_t data) {
    return refusal(dir, file_bytes("{" + body + "}", data));
  };
  CHECK(one(entry("[2]", "[0,8]"), 4).find("\"x\"") != std::string::npos);
  CHECK(one(entry("[3]", "[0,8]"), 8).find("needs 12 bytes") != std::string::npos);
  CHECK(one(entry("[2]", "[8,0]"), 8).find("outside") != std::string::npos);
  CHECK(one(entry("[2]", "[0,8]", "F8"), 8).find("unknown dtype") != std::string::npos);
  CHECK(one(entry("[-2]", "[0,8]"), 8).find("impossible shape") != std::string::npos);
  CHECK(one(entry("[4611686018427387904,4611686018427387904]", "[0,0]"), 0)
            .find("impossible shape") != std::string::npos);
  CHECK(one(entry("[1]", "[4,8]"), 8).find("hole") != std::string::npos);
  CHECK(one(entry("[1]", "[0,4]") + "," + entry("[1]", "[4,8]"), 8).find("stands twice") !=
        std::string::npos);
  CHECK(one(R"("y":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)" + entry("[2]", "[4,12]"), 12)
            .find("overlaps") != std::string::npos);
  CHECK(one(R"("x":3)", 0).find("lacks dtype") != std::string::npos);
  CHECK(refusal(dir, file_bytes("[1]", 0)).find("no JSON object") != std::string::npos);
  CHECK(refusal(dir, std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10))
            .find("not a safetensors") != std::string::npos);
  CHECK(!load_safetensors(dir.path()).ok());
  CHECK(load_safetensors(dir.path() / "absent").error().code == ErrorCode::not_found);
}

}  // namespace prefgrid
