#include "worker/nn/tokenizer.h"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "common/random.h"
#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"
#include "worker/nn/bpe_trainer.h"

namespace prefgrid {
namespace {

using Json = nlohmann::json;

std::string slurp(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::filesystem::path vector_file(const std::string& name) {
  return std::filesystem::path(PREFGRID_SOURCE_DIR) / "tests/vectors" / name;
}

std::string random_text(RandomStream& random, std::uint64_t length, std::uint64_t alphabet) {
  std::string text;
  for (std::uint64_t i = 0; i < length; ++i)
    text += static_cast<char>('a' + random.below(alphabet));
  return text;
}

std::vector<std::string> sample_texts() {
  RandomStream random(test_seed(), "sample texts");
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i) {
    texts.push_back(random_text(random, 1 + random.below(9), 3) + " don't " +
                    random_text(random, 1 + random.below(9), 3) + "  \xC3\xA9t\xC3\xA9\n");
  }
  return texts;
}

Tokenizer sample_tokenizer() {
  auto tokenizer = Tokenizer::train(sample_texts(), 340);
  REQUIRE(tokenizer.ok());
  return std::move(*tokenizer);
}

// The textbook's loop: count all pairs anew, merge everywhere, repeat.
BpeVocabulary naive_bpe(const std::unordered_map<std::string, std::int64_t>& words,
                        std::size_t size) {
  BpeVocabulary result;
  for (int byte = 0; byte < 256; ++byte) {
    result.tokens.emplace_back(1, static_cast<char>(byte));
  }
  std::vector<std::pair<std::vector<std::string>, std::int64_t>> split;
  for (const auto& [word, count] : words) {
    std::vector<std::string> parts;
    for (const char byte : word) parts.emplace_back(1, byte);
    split.emplace_back(parts, count);
  }
  while (result.tokens.size() < size) {
    std::map<std::pair<std::string, std::string>, std::int64_t> counts;
    for (const auto& [parts, count] : split) {
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) counts[{parts[i], parts[i + 1]}] += count;
    }
    std::pair<std::string, std::string> best;
    std::int64_t most = 1;
    for (const auto& [pair, count] : counts) {
      if (count > most) best = pair, most = count;
    }
    if (most < 2) break;
    const std::string made = best.first + best.second;
    if (std::find(result.tokens.begin(), result.tokens.end(), made) == result.tokens.end()) {
      result.tokens.push_back(made);
    }
    for (auto& [parts, count] : split) {
      std::vector<std::string> merged;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const bool here =
            i + 1 < parts.size() && parts[i] == best.first && parts[i + 1] == best.second;
        merged.push_back(here ? made : parts[i]);
        if (here) ++i;
      }
      parts = merged;
    }
  }
  return result;
}

std::string refusal(const TempDir& dir, const std::string& text) {
  auto result = Tokenizer::load(dir.write("tokenizer.json", text));
  REQUIRE(!result.ok());
  CHECK(result.error().message.find("tokenizer.json") != std::string::npos);
  return result.error().message;
}

}  // namespace

TEST_CASE("a file of the Hugging Face library gives that library's ids") {
  auto tokenizer = Tokenizer::load(vector_file("nn_tokenizer.json"));
  REQUIRE(tokenizer.ok());
  const Json cases = Json::parse(slurp(vector_file("nn_tokenizer_cases.json")));
  REQUIRE(cases.size() == 1500);
  for (const Json& expected : cases) {
    const std::string text = expected.at("text").get<std::string>();
    CAPTURE(text);
    CHECK(tokenizer->encode(text) == expected.at("ids").get<std::vector<TokenId>>());
  }
}

TEST_CASE("every byte string decodes to itself, UTF-8 or not") {
  const Tokenizer tokenizer = sample_tokenizer();
  RandomStream random(test_seed(), "bytes");
  for (int round = 0; round < 500; ++round) {
    std::string text;
    const std::uint64_t length = random.below(40);
    for (std::uint64_t i = 0; i < length; ++i) {
      text += random.below(3) == 0 ? "\xC3\xA9"[i % 2] : static_cast<char>(random.below(256));
    }
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  }
  CHECK(tokenizer.encode("").empty());
}

TEST_CASE("a long run without a cut encodes as fast and as well as short ones") {
  // Scenario: "aaaa..." is one piece; the heap must give what the scan gives on equal halves.
  const Tokenizer tokenizer = sample_tokenizer();
  const std::string text(300'000, 'a');
  const std::vector<TokenId> tokens = tokenizer.encode(text);
  CHECK(tokenizer.decode(tokens) == text);
  RandomStream random(test_seed(), "runs");
  for (int round = 0; round < 200; ++round) {
    // A piece of 40 by the scan; the same behind a long run that no merge crosses ("z" is in none).
    const std::string piece = random_text(random, 40, 3);
    const std::vector<TokenId> alone = tokenizer.encode(piece);
    const std::vector<TokenId> behind = tokenizer.encode(std::string(60, 'z') + piece);
    REQUIRE(behind.size() == alone.size() + 60);
    CHECK(std::equal(alone.begin(), alone.end(), behind.begin() + 60));
  }
}

TEST_CASE("incremental training learns what counting anew learns") {
  RandomStream random(test_seed(), "words");
  for (int round = 0; round < 20; ++round) {
    std::unordered_map<std::string, std::int64_t> words;
    for (int i = 0; i < 40; ++i) {
      words[random_text(random, 1 + random.below(12), 3)] += 1 + static_cast<int>(random.below(5));
    }
    CHECK(train_bpe(words, 330).tokens == naive_bpe(words, 330).tokens);
  }
}

TEST_CASE("training stops where nothing occurs twice and refuses too small a vocabulary") {
  const std::vector<std::string> texts{"ab"};
  auto small = Tokenizer::train(texts, 1000);
  REQUIRE(small.ok());
  CHECK(small->vocab_size() == 258);
  CHECK(!Tokenizer::train(texts, 257).ok());
  CHECK(!Tokenizer::train(texts, -5).ok());
}

TEST_CASE("a saved tokenizer loads to the same one") {
  const TempDir dir;
  const Tokenizer tokenizer = sample_tokenizer();
  REQUIRE(tokenizer.save(dir.path() / "tokenizer.json").ok());
  auto loaded = Tokenizer::load(dir.path() / "tokenizer.json");
  REQUIRE(loaded.ok());
  CHECK(loaded->fingerprint() == tokenizer.fingerprint());
  CHECK(loaded->vocab_size() == tokenizer.vocab_size());
  CHECK(loaded->begin_token() == tokenizer.begin_token());
  CHECK(loaded->end_token() == tokenizer.end_token());
  for (const std::string& text : sample_texts()) {
    CHECK(loaded->encode(text) == tokenizer.encode(text));
  }
  const std::vector<TokenId> marked{tokenizer.begin_token(), tokenizer.encode("a")[0],
                                    tokenizer.end_token()};
  CHECK(tokenizer.decode(marked) == "a");
  CHECK(tokenizer.fingerprint() != Tokenizer::train(sample_texts(), 265)->fingerprint());
}

TEST_CASE("text that spells a special token is ordinary text") {
  const Tokenizer tokenizer = sample_tokenizer();
  const std::string text = "<|end_of_text|>";
  const std::vector<TokenId> tokens = tokenizer.encode(text);
  CHECK(std::find(tokens.begin(), tokens.end(), tokenizer.end_token()) == tokens.end());
  CHECK(tokenizer.decode(tokens) == text);
}

TEST_CASE("a damaged tokenizer file is refused by name") {
  const TempDir dir;
  REQUIRE(sample_tokenizer().save(dir.path() / "good.json").ok());
  const std::string whole = slurp(dir.path() / "good.json");
  for (std::size_t size = 0; size + 2 < whole.size(); size += 1 + whole.size() / 60) {
    refusal(dir, whole.substr(0, size));
  }
  const Json good = Json::parse(whole);
  const auto changed = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    return refusal(dir, bad.dump());
  };
  CHECK(changed("/model/merges/0", "a nowhere").find("merges[0]") != std::string::npos);
  CHECK(changed("/model/merges/3", 5).find("merges[3]") != std::string::npos);
  CHECK(changed("/model/merges/1", good.at("model").at("merges")[0]).find("twice") !=
        std::string::npos);
  CHECK(changed("/model/merges", nullptr).find("model.merges") != std::string::npos);
  CHECK(changed("/model/vocab", Json::array()).find("model.vocab") != std::string::npos);
  CHECK(changed("/model/vocab/a", -1).find("no valid id") != std::string::npos);
  CHECK(changed("/model/vocab/a", 5).find("stands twice") != std::string::npos);
  CHECK(changed("/model/vocab/a", 9000).find("gaps") != std::string::npos);
  CHECK(changed("/model/type", "WordPiece").find("model.type") != std::string::npos);
  CHECK(changed("/model/dropout", 0.1).find("model.dropout") != std::string::npos);
  CHECK(changed("/normalizer", {{"type", "NFC"}}).find("normalizer") != std::string::npos);
  CHECK(changed("/pre_tokenizer/type", "Whitespace").find("pre_tokenizer") != std::string::npos);
  CHECK(changed("/pre_tokenizer/add_prefix_space", true).find("add_prefix_space") !=
        std::string::npos);
  CHECK(changed("/added_tokens", Json::array()).find("<|begin_of_text|>") != std::string::npos);
  CHECK(changed("/added_tokens/0/id", 7).find("added_tokens") != std::string::npos);
  Json no_byte = good;
  no_byte["model"]["merges"] = Json::array();
  no_byte["model"]["vocab"] = {{"<|begin_of_text|>", 0}, {"<|end_of_text|>", 1}, {"a", 2}};
  CHECK(refusal(dir, no_byte.dump()).find("single byte") != std::string::npos);
}

}  // namespace prefgrid
