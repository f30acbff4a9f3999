#include "coordinator/spec.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "tests/coordinator/plan/builders.h"
#include "tests/support/seed.h"

using namespace prefgrid;           // NOLINT: tests only
using namespace prefgrid::testing;  // NOLINT: tests only

namespace {

// A mistake: what of the good spec is replaced by what, and what must be said where.
struct Mistake {
  std::string from;
  std::string to;
  std::string place;  // "spec.yaml:" is put before it
  std::vector<std::string> said;
};

const std::vector<Mistake> mistakes = {
    // Unknown names come with the nearest known one.
    {"rank: 5",
     "rnak: 5",
     "11:38",
     {"unknown field \"rnak\" of lore", "did you mean \"rank\"?", "allowed: features_from, rank"}},
    {"  - global_bt\n",
     "  - gobal_bt\n",
     "9:5",
     {"unknown method \"gobal_bt\"", "did you mean \"global_bt\"?", "icl"}},
    {"  - greedy", "  - gredy", "13:5", {"unknown decoder \"gredy\"", "did you mean \"greedy\"?"}},
    {"seeds:", "sedes:", "16:1", {"unknown section \"sedes\"", "did you mean \"seeds\"?"}},
    {"kind: jsonl", "kind: jsnol", "2:17", {"unknown dataset kind", "did you mean \"jsonl\"?"}},
    {"path: data.jsonl",
     "paht: data.jsonl",
     "2:24",
     {"unknown field \"paht\" of dataset jsonl", "did you mean \"path\"?"}},
    {"tiny: {tokens: 1000}", "tiny: {tokenz: 1000}", "4:10", {"unknown field \"tokenz\" of model"}},
    {"policy_items: 2",
     "polic_items: 2",
     "15:14",
     {"unknown field \"polic_items\" of evaluation", "did you mean \"policy_items\"?"}},
    {"shots: 2", "zzzzzz: 2", "8:11", {"unknown field \"zzzzzz\" of icl; allowed: shots"}},
    // Types.
    {"shots: 2", "shots: two", "8:18", {"shots is \"two\"; it takes an integer from 1 to 64"}},
    {"shots: 2", "shots: 2.0", "8:18", {"shots is \"2.0\"; it takes an integer"}},
    {"shots: 2", "shots: {a: 1}", "8:18", {"shots is a map; it takes an integer"}},
    {"shots: 2", "shots:", "8:17", {"shots has no value"}},
    {"shots: 2", "shots: 99999999999999999999", "8:18", {"it takes an integer from 1 to 64"}},
    {"{shots: 2}", "2", "8:10", {"icl has a single value; write its fields as a map"}},
    {"{tokens: 1000}", "[tokens]", "4:9", {"model tiny is a list; write a map"}},
    {"{tokens: 1000}", "{tokens: [1, 2]}", "4:18", {"tokens is a list; it takes one value"}},
    {"{k: 4}", "{k: 4, weight: .nan}", "14:26", {"weight is \".nan\"; it takes a number from 0"}},
    {"{k: 4}", "{k: 4, weight: .inf}", "14:26", {"it takes a number from 0"}},
    {"policy_items: 2", "skip_small_users: yes", "15:32", {"it takes true or false"}},
    {"experiment: test", "experiment: a/b", "1:13", {"experiment is \"a/b\"; it takes a name"}},
    {"experiment: test", "experiment: ''", "1:13", {"it takes a name"}},
    {"experiment: test", "experiment: [a]", "1:13", {"experiment is a list"}},
    {"  tiny: {", "  ../x: {", "4:3", {"a model is called \"../x\""}},
    // Ranges.
    {"rank: 5", "rank: 0", "11:44", {"rank is \"0\"; it takes an integer from 1 to 256"}},
    {"[1, 5]", "[1, 257]", "10:42", {"rank is \"257\"; it takes an integer from 1 to 256"}},
    {"{k: 4}", "{k: 4, weight: -1}", "14:26", {"weight is \"-1\"; it takes a number from 0"}},
    {"features_from: bow",
     "features_from: bwo",
     "10:27",
     {"features_from is \"bwo\"", "did you mean \"bow\"?"}},
    {"[0, 1]", "[0, -1]", "16:12", {"a seed is \"-1\""}},
    {"policy_items: 2", "weights: [0, -1]", "15:27", {"a weight is \"-1\""}},
    // Empty and missing.
    {"[1, 5]", "[]", "10:38", {"rank is an empty list", "leave rank out for its default"}},
    {"seeds: [0, 1]", "seeds: []", "16:8", {"seeds is an empty list; write a list"}},
    {"seeds: [0, 1]", "seeds: 3", "16:8", {"seeds is a single value; write a list"}},
    {"policy_items: 2", "weights: []", "15:23", {"weights is an empty list"}},
    {"experiment: test\n", "", "1:1", {"the section `experiment` is missing"}},
    {"kind: jsonl, ", "", "2:10", {"dataset has no kind; give it: one of"}},
    {", path: data.jsonl", "", "2:10", {"dataset jsonl has no path"}},
    {"{kind: jsonl, path: data.jsonl}", "{}", "2:10", {"dataset is empty; write a map"}},
    {"{kind: jsonl, path: data.jsonl}", "data.jsonl", "2:10", {"dataset is a single value"}},
    // Relations.
    {"heads: 6, kv_heads: 6",
     "heads: 7, kv_heads: 7",
     "5:3",
     {"heads 7 does not divide d_model 192"}},
    {"heads: 6, kv_heads: 6",
     "heads: 8, kv_heads: 3",
     "5:3",
     {"kv_heads 3 does not divide heads 8"}},
    {"heads: 6, kv_heads: 6", "heads: 64, kv_heads: 6", "5:3", {"192 / heads 64 is odd"}},
    {"  - args: {k: 4}\n",
     "",
     "9:5",
     {"global_bt goes with none of the listed decoders", "add to `decoding` one of: args"}},
    {"  - zero_shot\n  - icl: {shots: 2}\n",
     "",
     "11:5",
     {"no listed method goes with greedy", "list one of: zero_shot, icl"}},
    {"decoding:\n  - greedy\n  - args: {k: 4}\n", "", "1:1", {"the section `decoding` is missing"}},
    // Shapes of lists.
    {"  - icl: {shots: 2}", "  - {icl: , zero_shot: }", "8:5", {"a map of several names"}},
    {"  - icl: {shots: 2}", "  - [icl]", "8:5", {"an entry of methods is a list"}},
    {"seeds: [0, 1]", "policies: tiny", "16:11", {"it takes `same`"}},
    {"seeds: [0, 1]",
     "policies: [tny]",
     "16:12",
     {"unknown model \"tny\" in policies", "did you mean \"tiny\"?"}},
};

}  // namespace

TEST_CASE("a mistake in a spec is named with its place and what is allowed") {
  REQUIRE(parse(base_spec).ok());
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.to);
    const auto spec = parse(replaced(base_spec, mistake.from, mistake.to));
    REQUIRE_FALSE(spec.ok());
    CHECK(spec.error().code == ErrorCode::invalid_input);
    const std::string& message = spec.error().message;
    CAPTURE(message);
    CHECK(("\n" + message).find("\nspec.yaml:" + mistake.place + ": ") != std::string::npos);
    for (const std::string& part : mistake.said) {
      CAPTURE(part);
      CHECK(message.find(part) != std::string::npos);
    }
  }
}

TEST_CASE("a key that stands twice is refused with its place") {
  const auto spec = parse(replaced(base_spec, "seeds: [0, 1]", "seeds: [0]\nseeds: [1]"));
  REQUIRE_FALSE(spec.ok());
  CHECK(spec.error().message.starts_with("spec.yaml:17:1: "));
  CHECK_FALSE(parse(replaced(base_spec, "  wide:", "  tiny:")).ok());
}

TEST_CASE("every mistake of a spec is shown at once, in the file's order") {
  std::string text = replaced(base_spec, "rank: 5", "rank: 0");
  text = replaced(text, "shots: 2", "shotz: 2");
  const auto spec = parse(text);
  REQUIRE_FALSE(spec.ok());
  const std::string& message = spec.error().message;
  CHECK(message.find("spec.yaml:8:11: ") == 0);
  CHECK(message.find("\nspec.yaml:11:44: ") != std::string::npos);
}

TEST_CASE("a long list of mistakes is cut") {
  std::string seeds;
  for (int i = 0; i < 50; ++i) seeds += "x, ";
  const auto spec = parse(replaced(base_spec, "[0, 1]", "[" + seeds + "0]"));
  REQUIRE_FALSE(spec.ok());
  CHECK(spec.error().message.find("... and 30 more") != std::string::npos);
}

TEST_CASE("a document that is no map is refused") {
  for (const char* text : {"", "42", "[a, b]", "# nothing\n"}) {
    CAPTURE(text);
    CHECK_FALSE(parse(text).ok());
  }
}

TEST_CASE("a list spans a grid and defaults are left out") {
  const auto spec = parse(base_spec);
  REQUIRE(spec.ok());
  REQUIRE(spec->methods.size() == 6);
  CHECK(spec->methods[3].label == "features_from=bow,rank=1");
  CHECK(spec->methods[3].fields == ValueMap{{"features_from", "bow"}, {"rank", 1}});
  CHECK(spec->methods[4].label == "features_from=bow,rank=5");
  CHECK(spec->methods[4].fields == ValueMap{{"features_from", "bow"}});
  CHECK(spec->methods[5].fields.empty());
  CHECK(spec->decoders[1].fields == ValueMap{{"k", 4}});
  CHECK(spec->seeds == std::vector<std::uint64_t>{0, 1});
  CHECK(spec->notes.empty());
}

TEST_CASE("several lists span all their combinations") {
  const auto spec = parse(replaced(base_spec, "rank: 5", "rank: [1, 2], steps: [10, 20, 30]"));
  REQUIRE(spec.ok());
  REQUIRE(spec->methods.size() == 11);
  CHECK(spec->methods[5].label == "features_from=global_bt,rank=1,steps=10");
  CHECK(spec->methods[10].label == "features_from=global_bt,rank=2,steps=30");
}

TEST_CASE("a grid too large to mean it is refused") {
  std::string list;
  for (int i = 1; i <= 200; ++i) list += std::to_string(i) + (i < 200 ? ", " : "");
  const auto spec =
      parse(replaced(base_spec, "rank: 5", "rank: [" + list + "], steps: [" + list + "]"));
  REQUIRE_FALSE(spec.ok());
  CHECK(spec.error().message.find("spans more than 10000") != std::string::npos);
}

TEST_CASE("cells that mean the same are planned once, and that is said") {
  const auto spec = parse(replaced(base_spec, "rank: 5", "rank: [5, 5]"));
  REQUIRE(spec.ok());
  CHECK(spec->methods.size() == 6);
  REQUIRE(spec->notes.size() == 1);
  CHECK(spec->notes[0].find("spec.yaml:11:5: methods: lore") == 0);
  CHECK(spec->notes[0].find("planned once") != std::string::npos);
  const auto seeds = parse(replaced(base_spec, "[0, 1]", "[0, 0, 1]"));
  REQUIRE(seeds.ok());
  CHECK(seeds->seeds.size() == 2);
  CHECK(seeds->notes.size() == 1);
}

TEST_CASE("models of equal fields are noted") {
  const auto spec = parse(replaced(base_spec, "tiny: {", "twin: {tokens: 1000}\n  tiny: {"));
  REQUIRE(spec.ok());
  REQUIRE(spec->notes.size() == 1);
  CHECK(spec->notes[0].find("twin") != std::string::npos);
}

TEST_CASE("spellings that mean the same make the same spec") {
  const std::string text = replaced(base_spec, "rank: 5", "rank: 5, learning_rate: 0.00001");
  const auto plain = parse(text);
  REQUIRE(plain.ok());
  for (const char* spelling : {"1e-5", "1.0e-05", "1E-5", "0.000010"}) {
    CAPTURE(spelling);
    const auto other = parse(replaced(text, "0.00001", spelling));
    REQUIRE(other.ok());
    CHECK(other->methods.back().fields == plain->methods.back().fields);
    CHECK(other->methods.back().label == plain->methods.back().label);
  }
  // An integer stands for a real: the canonical value is a real.
  const auto whole = parse(replaced(text, "0.00001", "1"));
  REQUIRE(whole.ok());
  CHECK(whole->methods.back().fields.at("learning_rate") == Value(1.0));
}

TEST_CASE("user strings stay strings") {
  for (const char* path : {"no", "0123", "12:30", "1e5", "null", "~", "true"}) {
    CAPTURE(path);
    const auto spec =
        parse(replaced(base_spec, "path: data.jsonl", "path: \"" + std::string(path) + "\""));
    REQUIRE(spec.ok());
    CHECK(spec->dataset.at("path") == Value(path));
  }
  const auto plain = parse(replaced(base_spec, "path: data.jsonl", "path: 0123"));
  REQUIRE(plain.ok());
  CHECK(plain->dataset.at("path") == Value("0123"));
}

TEST_CASE("weights are a set: their order and repeats mean nothing") {
  const auto a = parse(replaced(base_spec, "policy_items: 2", "weights: [2, 0, 1.0, 1]"));
  const auto b = parse(replaced(base_spec, "policy_items: 2", "weights: [0, 1, 2]"));
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  CHECK(a->evaluation == b->evaluation);
  const auto defaults =
      parse(replaced(base_spec, "policy_items: 2", "weights: [16, 8, 4, 2, 1, 0.5, 0]"));
  REQUIRE(defaults.ok());
  CHECK_FALSE(defaults->evaluation.contains("weights"));
}

TEST_CASE("a spec survives its way through the store") {
  const auto spec = parse(replaced(base_spec, "seeds: [0, 1]", "policies: [tiny]"));
  REQUIRE(spec.ok());
  const Value stored = to_value(*spec);
  const auto back = spec_from_value(stored);
  REQUIRE(back.ok());
  CHECK(to_value(*back) == stored);
  CHECK(back->methods.size() == spec->methods.size());
  CHECK(back->policies == std::vector<std::string>{"tiny"});
}

TEST_CASE("a damaged stored spec is an error, whatever is missing") {
  const auto spec = parse(base_spec);
  REQUIRE(spec.ok());
  const ValueMap whole = to_value(*spec).map();
  for (const auto& [name, value] : whole) {
    CAPTURE(name);
    ValueMap without = whole;
    without.erase(name);
    CHECK_FALSE(spec_from_value(Value(without)).ok());
    ValueMap wrong = whole;
    wrong[name] = Value(1.5);
    CHECK_FALSE(spec_from_value(Value(wrong)).ok());
  }
  CHECK_FALSE(spec_from_value(Value("text")).ok());
}

TEST_CASE("a dataset's error comes with the place of its section") {
  const auto spec = parse(base_spec);
  REQUIRE(spec.ok());
  const Error error = in_dataset_section(*spec, {ErrorCode::not_found, "data.jsonl is not there"});
  CHECK(error.code == ErrorCode::not_found);
  CHECK(error.message == "spec.yaml:2:10: dataset: data.jsonl is not there");
}

TEST_CASE("a spec with random damage is planned or refused with its name, never more") {
  std::mt19937_64 random(test_seed());
  const std::string letters = "{}[]:,-#'\"\n\t &*!|>%@`0aZ.~\xC3\x00";
  std::size_t refused = 0;
  for (int round = 0; round < 3'000; ++round) {
    std::string text = base_spec;
    for (std::size_t edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      const char letter = letters[random() % letters.size()];
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 8);
          break;
        case 1:
          text.insert(at, 1, letter);
          break;
        case 2:
          text[at] = letter;
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
    }
    const auto plan = plan_of(text);
    if (plan.ok()) continue;
    ++refused;
    CAPTURE(text);
    CHECK(plan.error().code == ErrorCode::invalid_input);
    CHECK(plan.error().message.starts_with("spec.yaml"));
  }
  CHECK(refused > 1'000);
  CHECK(refused < 3'000);
}

TEST_CASE("the specs that come with the project are good") {
  for (const char* name : {"quickstart", "smoke"}) {
    CAPTURE(name);
    const auto root =
        load_yaml(std::string(PREFGRID_SOURCE_DIR) + "/experiments/specs/" + name + ".yaml");
    REQUIRE(root.ok());
    const auto spec = parse_spec(*root, name, catalog());
    CAPTURE(spec.ok() ? "" : spec.error().message);
    REQUIRE(spec.ok());
    CHECK(spec->notes.empty());
    CHECK(make_plan(*spec, users(32), digest(), catalog()).ok());
  }
}
