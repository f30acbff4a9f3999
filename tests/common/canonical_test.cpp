#include "common/canonical.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "common/files.h"
#include "common/limits.h"
#include "common/sha256.h"

namespace prefgrid {
namespace {

JobKey key_of(const std::string& name) {
  return {sha256(name)};
}

JobSpec with(const std::string& field, Value value) {
  JobSpec spec;
  spec.kind = "rm_accuracy";
  spec.parameters[field] = std::move(value);
  return spec;
}

JobKey key(const JobSpec& spec) {
  return job_key(spec).value();
}

// The specs of tests/vectors/job_keys.json: one for each thing that the encoding must keep apart.
std::vector<std::pair<std::string, JobSpec>> golden_specs() {
  std::vector<std::pair<std::string, JobSpec>> specs;
  const auto add = [&](const std::string& name, JobSpec spec) {
    specs.emplace_back(name, std::move(spec));
  };
  add("empty", {});
  add("kind alone", {"pretrain", 1, {}, {}, {}});
  add("kind version", {"pretrain", 2, {}, {}, {}});
  add("seed 0", {"train.lore", 1, {}, {}, 0});
  add("largest seed", {"train.lore", 1, {}, {}, std::numeric_limits<std::uint64_t>::max()});
  add("boolean", with("x", true));
  add("integer", with("x", 1));
  add("real", with("x", 1.0));
  add("negative zero", with("x", -0.0));
  add("small real", with("x", 1e-5));
  add("text", with("x", "1"));
  add("text beyond ASCII", with("user", "m\xc3\xbcller \xe2\x82\xac"));
  add("list and map",
      with("x", ValueList{1, "two", ValueMap{{"three", 3.5}, {"four", ValueList{}}}, false}));
  JobSpec inputs{"embed.lm", 1, {{"max_prompt_tokens", 128}}, {}, {}};
  inputs.inputs["backbone"] = key_of("pretrain");
  inputs.inputs["dataset"] = ArtifactDigest{sha256("dataset")};
  add("inputs", inputs);
  return specs;
}

std::string vectors_file() {
  return PREFGRID_SOURCE_DIR "/tests/vectors/job_keys.json";
}

}  // namespace

// If this fails, every finished job of every user runs again: change the version byte of the
// encoding knowingly, or find the mistake. To write the file anew:
//   PREFGRID_WRITE_VECTORS=1 build/tests/test_common -tc="job keys are those of the golden file"
TEST_CASE("job keys are those of the golden file") {
  nlohmann::ordered_json now;
  for (const auto& [name, spec] : golden_specs()) now[name] = key(spec).hex();
  if (std::getenv("PREFGRID_WRITE_VECTORS") != nullptr) {
    REQUIRE(write_file_atomic(vectors_file(), now.dump(2) + "\n").ok());
  }
  const std::string text = read_file(vectors_file(), 1 << 20).value();
  const auto golden = nlohmann::ordered_json::parse(text);
  REQUIRE(golden.size() == now.size());
  for (const auto& [name, hex] : golden.items()) {
    CAPTURE(name);
    CHECK(now[name] == hex);
  }
}

TEST_CASE("the encoding has the bytes that its header promises") {
  JobSpec spec{"k", 258, {{"a", 1}, {"b", "x"}}, {}, 7};
  spec.inputs["i"] = JobKey{};
  const std::string expected =
      std::string("prefgrid job\x01") + std::string("\x01\0\0\0\0\0\0\0k", 9) +
      std::string("\x02\x01\0\0", 4) + std::string("\x02\0\0\0\0\0\0\0", 8) +
      std::string("\x01\0\0\0\0\0\0\0a", 9) + std::string("i\x01\0\0\0\0\0\0\0", 9) +
      std::string("\x01\0\0\0\0\0\0\0b", 9) + std::string("t\x01\0\0\0\0\0\0\0x", 10) +
      std::string("\x01\0\0\0\0\0\0\0", 8) + std::string("\x01\0\0\0\0\0\0\0i", 9) + "J" +
      std::string(32, '\0') + std::string("S\x07\0\0\0\0\0\0\0", 9);
  CHECK(canonical_encoding(spec).value() == expected);
  CHECK(key(spec).bytes == sha256(expected));
  CHECK(canonical_encoding(Value(1.5)).value() == std::string("r\0\0\0\0\0\0\xf8\x3f", 9));
}

TEST_CASE("jobs that differ in anything have different keys") {
  std::set<JobKey> keys;
  std::size_t count = 0;
  for (const auto& [name, spec] : golden_specs()) {
    keys.insert(key(spec));
    ++count;
  }
  JobSpec file{"k", 1, {}, {{"i", ArtifactDigest{}}}, {}};
  JobSpec job{"k", 1, {}, {{"i", JobKey{}}}, {}};
  for (const JobSpec& spec :
       {file, job, with("x", ValueList{}), with("x", ValueMap{}), with("x", ""), with("", "x"),
        with("x", false), with("x", ValueList{"ab", "c"}), with("x", ValueList{"a", "bc"}),
        with("x", ValueList{ValueList{"a"}, "b"}), with("x", ValueList{ValueList{"a", "b"}}),
        with("x", std::string("a\0", 2)), with("x", "a")}) {
    keys.insert(key(spec));
    ++count;
  }
  CHECK(keys.size() == count);
}

TEST_CASE("minus zero is zero, and the order of insertion does not matter") {
  CHECK(key(with("x", -0.0)) == key(with("x", 0.0)));
  JobSpec forwards{"k", 1, {}, {}, {}};
  JobSpec backwards = forwards;
  for (const char* name : {"a", "b", "\xc3\xa9"}) forwards.parameters[name] = 1;
  for (const char* name : {"\xc3\xa9", "b", "a"}) backwards.parameters[name] = 1;
  CHECK(key(forwards) == key(backwards));
}

TEST_CASE("NaN and infinity are refused, naming the field") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(job_key(with("beta", std::nan(""))).error().message ==
        "parameters.beta is nan, a finite number is needed");
  const Value nested = ValueMap{{"list", ValueList{1, -infinity}}};
  const auto refused = job_key(with("x", nested));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::invalid_input);
  CHECK(refused.error().message == "parameters.x.list[1] is -inf, a finite number is needed");
}

TEST_CASE("nesting without end is refused instead of overflowing the stack") {
  Value value = 1;
  for (std::size_t i = 0; i < limits::value_depth + 5; ++i) value = ValueList{std::move(value)};
  CHECK_FALSE(canonical_encoding(value).ok());
}

}  // namespace prefgrid
