#include <doctest/doctest.h>
#include <zlib.h>

#include <filesystem>
#include <set>

#include "common/limits.h"
#include "experiments/datasets/dataset.h"
#include "experiments/datasets/rows.h"
#include "experiments/datasets/text_file.h"
#include "tests/support/temp_dir.h"

namespace prefgrid {
namespace {

const std::string pair_a =
    R"({"id":"p1","user":"ann","prompt":"x","chosen":"Yes","rejected":"yes","split":"train"})"
    "\n";
const std::string pair_b =
    R"({"id":"p2","user":"bob","prompt":"y","chosen":"A\u00e9","rejected":"B","split":"test"})"
    "\n";
const std::string users =
    R"({"user":"bob","seen":false,"given":["c1"],"age":31,"rate":0.5,"vip":true})"
    "\n"
    R"({"user":"ann","seen":true})"
    "\n";
const std::string completions =
    R"({"id":"c1","user":"bob","prompt":"z","completion":"done","split":"train"})"
    "\n"
    R"({"id":"c2","user":"bob","prompt":"w","completion":"more","split":"train"})"
    "\n"
    R"({"id":"k1","author":"zoe","prompt":"q","completion":"r"})"
    "\n";

ValueMap section(const std::filesystem::path& path) {
  ValueMap map;
  map.emplace("kind", Value("jsonl"));
  map.emplace("path", path.string());
  return map;
}

std::string error_of(const std::string& text) {
  const Result<Dataset> dataset = read_dataset(text, "f.jsonl");
  return dataset.ok() ? "no error" : dataset.error().message;
}

TEST_CASE("a data set written and read is the same, to the byte") {
  const Result<Dataset> dataset = read_dataset(users + pair_a + pair_b + completions, "f.jsonl");
  REQUIRE(dataset.ok());
  CHECK(dataset->name == "f");
  REQUIRE(dataset->users.size() == 2);
  CHECK(dataset->users[0].id == "ann");
  CHECK(dataset->users[0].given_pairs == std::vector<std::uint32_t>{0});
  CHECK(dataset->users[1].given_completions == std::vector<std::uint32_t>{0});
  CHECK(dataset->users[1].attributes.at("age").integer() == 31);
  CHECK(dataset->users[1].attributes.at("rate").real() == 0.5);
  const std::string text = write_dataset(*dataset);
  const Result<Dataset> again = read_dataset(text, "other.jsonl");
  REQUIRE(again.ok());
  CHECK(*again == *dataset);
  CHECK(write_dataset(*again) == text);
}

TEST_CASE("line order and CRLF do not change the data set") {
  std::string text = completions + pair_b + pair_a + users;
  const std::string straight =
      write_dataset(*read_dataset(users + pair_a + pair_b + completions, "f"));
  CHECK(write_dataset(*read_dataset(text, "f")) == straight);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
    text.insert(at, "\r");
  }
  CHECK(write_dataset(*read_dataset(text, "f")) == straight);
}

TEST_CASE("a bad line is refused with file, line and field") {
  const auto with = [](std::string line, const std::string& from, const std::string& to) {
    return line.replace(line.find(from), from.size(), to);
  };
  struct Case {
    std::string line;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"{", "f.jsonl:2: not JSON"},
      {"[1]", "f.jsonl:2: not a JSON object"},
      {"", "f.jsonl:2: an empty line"},
      {"\xEF\xBB\xBF" + pair_b, "byte order mark"},
      {with(pair_b, "\"split\":\"test\"", "\"split\":\"dev\""), "f.jsonl:2: field \"split\""},
      {with(pair_b, "\"prompt\":\"y\"", "\"prompt\":\" \""), "field \"prompt\" is empty"},
      {with(pair_b, "\"prompt\":\"y\"", "\"prompt\":7"), "field \"prompt\" is an integer"},
      {with(pair_b, "\"prompt\":\"y\"", "\"prompt\":null"), "field \"prompt\" is null"},
      {with(pair_b, "\"prompt\":\"y\"", "\"prompt\":{}"), "field \"prompt\" is an object"},
      {with(pair_b, "\"prompt\":\"y\"", "\"promt\":\"y\""), "field \"promt\" is unknown"},
      {with(pair_b, "\"prompt\":\"y\",", ""), "field \"prompt\" is missing"},
      {with(pair_b, "\"prompt\":\"y\"", "\"id\":\"y\""), "field \"id\" stands twice"},
      {with(pair_b, "\"prompt\":\"y\"", "\"prompt\":\"a\\u0000b\""), "NUL"},
      {with(pair_b, "\"prompt\":\"y\"", "\"prompt\":\"\xFF\""), "f.jsonl:2: not JSON"},
      {with(pair_b, "\"B\"", "\"A\\u00e9\""), "field \"rejected\" equals"},
      {with(pair_b, "\"p2\"", "\"p1\""), "first in line 1"},
      {with(pair_b, "\"p2\"", "\"p\\u001b[31m\""), "field \"id\" holds a control character"},
      {with(pair_b, "\"p2\"", "\"" + std::string(300, 'x') + "\""), "field \"id\" is longer"},
      {with(pair_b, "\"y\"", "\"" + std::string(limits::dataset_line_bytes, 'x') + "\""),
       "longer than"},
      {R"({"prefgrid_dataset":1,"name":"n"})", "not the first line"},
      {R"({"user":"eve","seen":true})", "field \"user\": \"ann\" has no user record"},
      {R"({"user":"ann","seen":true,"given":[]})", "given"},
      {R"({"user":"ann","seen":false,"given":["p9"]})", "\"p9\" is no train item"},
      {R"({"user":"ann","seen":false,"given":[3]})", "list of something else"},
      {R"({"id":"p1","user":"bob","prompt":"z","completion":"d","split":"train"})",
       "is a pair in line 1"},
      {R"({"id":"p3","user":"bob","prompt":"X ","chosen":"yes","rejected":"YES","split":"test"})",
       "f.jsonl:1: field \"split\": this item is train, in line 2 it is test"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.line.substr(0, 120));
    const std::string error = error_of(pair_a + c.line + (c.line.ends_with('\n') ? "" : "\n"));
    CAPTURE(error);
    CHECK(error.find(c.expected) != std::string::npos);
  }
  CHECK(error_of("") == "f.jsonl: holds no pair and no completion");
  CHECK(error_of(R"({"prefgrid_dataset":2,"name":"n"})").find("f.jsonl:1: data set format 2") == 0);
}

TEST_CASE("a file cut anywhere is read as fewer items or refused, never crashes") {
  const std::string text = pair_a + pair_b + completions;
  for (std::size_t length = 0; length < text.size(); ++length) {
    const Result<Dataset> dataset = read_dataset(text.substr(0, length), "f");
    if (dataset.ok()) CHECK(dataset->pairs.size() + dataset->completions.size() < 5);
  }
}

TEST_CASE("bad rows can be skipped and are counted with their reasons") {
  const TempDir dir;
  const auto file = dir.write("a.jsonl", pair_a + "{\n{ \n" + pair_a + pair_b);
  ValueMap options = section(file);
  const Result<LoadedDataset> refused = load_dataset(options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("a.jsonl:2: not JSON") != std::string::npos);
  options.emplace("on_bad_row", Value("skip"));
  const Result<LoadedDataset> loaded = load_dataset(options);
  REQUIRE(loaded.ok());
  CHECK(loaded->dataset.pairs.size() == 2);
  const std::vector<SkippedRows> expected = {{"duplicate id", 1}, {"not JSON", 2}};
  CHECK(loaded->summary.skipped == expected);
  CHECK(describe(loaded->summary).find("left out:        2  not JSON") != std::string::npos);
}

TEST_CASE("of an item on two sides the held-out one is kept, whatever the order of the lines") {
  const std::string test =
      R"({"id":"p3","user":"bob","prompt":"X","chosen":"yes","rejected":"YES","split":"test"})"
      "\n";
  const TempDir dir;
  for (const std::string& text : {pair_a + test, test + pair_a}) {
    ValueMap options = section(dir.write("a.jsonl", text));
    options.emplace("on_bad_row", Value("skip"));
    const Result<LoadedDataset> loaded = load_dataset(options);
    REQUIRE(loaded.ok());
    REQUIRE(loaded->dataset.pairs.size() == 1);
    CHECK(loaded->dataset.pairs[0].id == "p3");
  }
}

TEST_CASE("without valid lines a tenth of train is held out by item, the same for all users") {
  std::string text;
  for (int i = 0; i < 2'000; ++i) {
    const std::string item = std::to_string(i / 2);  // each pair of texts occurs for two users
    text += R"({"id":")" + std::to_string(i) + R"(","user":"u)" + std::to_string(i % 2) +
            R"(","prompt":"p)" + item + R"(","chosen":"a","rejected":"b","split":"train"})" + "\n";
  }
  const TempDir dir;
  const Result<LoadedDataset> loaded = load_dataset(section(dir.write("a.jsonl", text)));
  REQUIRE(loaded.ok());
  std::set<std::string> valid;
  std::set<std::string> train;
  for (const PairItem& item : loaded->dataset.pairs) {
    (item.split == Split::valid ? valid : train).insert(item.prompt);
  }
  CHECK(valid.size() + train.size() == 1'000);
  CHECK(valid.size() > 70);
  CHECK(valid.size() < 130);
  CHECK(loaded->dataset.users[0].seen);
  CHECK(loaded->dataset.users[0].given_pairs.size() == train.size());
}

TEST_CASE("gzip files are read, and cut or damaged ones refused") {
  const TempDir dir;
  const std::string name = (dir.path() / "a.jsonl.gz").string();
  const gzFile out = gzopen(name.c_str(), "wb");
  gzwrite(out, pair_a.data(), static_cast<unsigned>(pair_a.size()));
  gzclose(out);
  const Result<LoadedDataset> loaded = load_dataset(section(name));
  REQUIRE(loaded.ok());
  CHECK(loaded->dataset.name == "a");
  std::string packed;
  {
    std::ifstream in(name, std::ios::binary);
    packed.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (std::size_t length = 2; length < packed.size(); ++length) {
    CHECK_FALSE(read_text_file(dir.write("cut.gz", packed.substr(0, length))).ok());
  }
  packed[packed.size() - 6] = static_cast<char>(packed[packed.size() - 6] ^ 1);  // in the CRC
  CHECK_FALSE(read_text_file(dir.write("bad.gz", packed)).ok());
  CHECK_FALSE(read_text_file(name, pair_a.size() - 1).ok());
  CHECK(read_text_file(dir.path() / "none").error().code == ErrorCode::not_found);
}

TEST_CASE("a summary survives its value form, and a wrong value is refused") {
  DatasetSummary summary = summarise(*read_dataset(users + pair_a + pair_b + completions, "f"));
  summary.skipped = {{"merge", 3}};
  const Result<DatasetSummary> again = summary_from_value(to_value(summary));
  REQUIRE(again.ok());
  CHECK(*again == summary);
  CHECK(summary.users[1].given == 1);
  ValueMap map = to_value(summary).map();
  map.at("users").emplace<std::string>("x");
  CHECK_FALSE(summary_from_value(map).ok());
  CHECK_FALSE(summary_from_value(Value(1)).ok());
}

TEST_CASE("an unknown kind or field value in the section is refused") {
  ValueMap map;
  CHECK_FALSE(load_dataset(map).ok());
  map.emplace("kind", Value("jsonI"));
  CHECK(load_dataset(map).error().message.find("jsonl") != std::string::npos);
  ValueMap seed = section("x");
  seed.emplace("split_seed", std::int64_t{-1});
  CHECK(load_dataset(seed).error().message.find("split_seed") != std::string::npos);
  CHECK(dataset_rows().size() == 2);
}

TEST_CASE("the real UKPConvArg file reads with its equal pairs skipped") {
  const std::filesystem::path file =
      PREFGRID_SOURCE_DIR "/../shared/data/ukp-convarg/pairs.jsonl.gz";
  if (!std::filesystem::exists(file)) {
    MESSAGE("skipped: ../shared/data/ukp-convarg is not here");
    return;
  }
  ValueMap options = section(file);
  options.emplace("on_bad_row", Value("skip"));
  const Result<LoadedDataset> loaded = load_dataset(options);
  REQUIRE(loaded.ok());
  CHECK(loaded->summary.users.size() == 173);
  std::uint64_t skipped = 0;
  for (const SkippedRows& rows : loaded->summary.skipped) skipped += rows.count;
  CHECK(loaded->dataset.pairs.size() + skipped == 40'546);
  CHECK(skipped < 400);
}

}  // namespace
}  // namespace prefgrid
