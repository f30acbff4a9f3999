#include <doctest/doctest.h>

#include <algorithm>

#include "common/random.h"
#include "experiments/datasets/held_out.h"
#include "experiments/datasets/leak_detector.h"
#include "tests/support/seed.h"

namespace prefgrid {
namespace {

// Two seen users and an unseen one with a completion and a pair in every split.
Dataset small_dataset(const std::string& extra = "") {
  std::string text = R"({"user":"a","seen":true})"
                     "\n"
                     R"({"user":"b","seen":true})"
                     "\n"
                     R"({"user":"c","seen":false,"given":["c-train"]})"
                     "\n";
  for (const std::string user : {"a", "b", "c"}) {
    for (const std::string split : {"train", "valid", "test", "more"}) {
      const std::string id = user + "-" + split;
      const std::string place = split == "more" ? "train" : split;
      text += R"({"id":")" + id + R"(","user":")" + user + R"(","prompt":"body )" + id +
              R"(","completion":"Subject of a long kind )" + id + R"(","split":")" + place +
              "\"}\n";
      text += R"({"id":")" + id + R"(","user":")" + user + R"(","prompt":"body )" + id +
              R"(","chosen":"Subject of a long kind )" + id +
              R"(","rejected":"subject of a long kind )" + id + R"(","split":")" + place + "\"}\n";
    }
  }
  Result<Dataset> dataset = read_dataset(text + extra, "small");
  REQUIRE(dataset.ok());
  return *std::move(dataset);
}

bool has(const std::vector<Leak>& leaks, LeakKind kind, const std::string& item) {
  return std::ranges::any_of(
      leaks, [&](const Leak& leak) { return leak.kind == kind && leak.item_id == item; });
}

std::uint32_t completion(const Dataset& dataset, const std::string& id) {
  return static_cast<std::uint32_t>(
      std::ranges::find(dataset.completions, id, &CompletionItem::id) -
      dataset.completions.begin());
}

TEST_CASE("a clean data set has no leak") {
  CHECK(check_leaks(small_dataset()).empty());
}

TEST_CASE("each kind of planted leak in what a run used is found") {
  const Dataset dataset = small_dataset();
  TrainingMaterial run;
  run.name = "run";
  const auto find = [&] { return find_leaks(dataset, std::vector{run}); };
  run.completions = {completion(dataset, "a-test")};
  CHECK(has(find(), LeakKind::same_id, "a-test"));
  run.completions = {completion(dataset, "c-more")};  // unseen, outside its given set
  CHECK(has(find(), LeakKind::not_given, "c-more"));
  run.completions = {completion(dataset, "c-train"), completion(dataset, "a-train")};
  run.pairs = {0};
  CHECK(find().size() == (dataset.pairs[0].split == Split::train ? 0 : 1));
  run = {"run", {}, {}, {{"someone", "x", "SUBJECT of a long  kind b-valid."}}};
  CHECK(has(find(), LeakKind::same_text, "b-valid"));
  run.texts = {{"", "Shot 1\nsubject of a long kind b-test\n\nShot 2", ""}};
  CHECK(has(find(), LeakKind::contained_text, "b-test"));
  CHECK(to_string(find().front()).find("test item b-test of user b") == 0);
}

TEST_CASE("a train item that quotes a held-out text, or a held-out item again, is reported") {
  const Dataset quoting = small_dataset(
      R"({"id":"q","user":"a","prompt":"Reverts: subject of a long kind b-test, sorry","completion":"Undo it","split":"train"})"
      "\n");
  const std::vector<Leak> leaks = check_leaks(quoting);
  CHECK(has(leaks, LeakKind::contained_text, "b-test"));
  for (const Leak& leak : leaks) CHECK(leak.material != "training corpus");  // it leaves it out
  Dataset repeated = small_dataset();
  for (CompletionItem& item : repeated.completions) {
    if (item.id != "a-train") continue;
    item.prompt = "Body  a-test";
    item.completion = "subject of a long kind A-TEST";
  }
  CHECK(has(check_leaks(repeated), LeakKind::same_item, "a-test"));
}

TEST_CASE("the corpus holds seen users' train texts and outsiders' without held-out text") {
  const Dataset dataset = small_dataset(
      R"({"id":"k1","author":"x","prompt":"p","completion":"fine"})"
      "\n"
      R"({"id":"k2","author":"x","prompt":"see Subject of a long kind c-test","completion":"q"})"
      "\n"
      R"({"id":"k3","author":"x","prompt":"p ","completion":"Fine"})"
      "\n");
  const std::vector<TrainingText> corpus = training_corpus(dataset);
  CHECK(corpus.size() == 5);  // two of a, two of b, k1; pairs say the same as completions
  for (const TrainingText& text : corpus) CHECK(text.author != "c");
  CHECK(corpus.back().completion == "fine");
}

TEST_CASE("the finder agrees with a plain search on random texts") {
  RandomStream random(test_seed(), "finder");
  const auto text = [&](std::size_t length) {
    std::string result(length, 'a');
    for (char& c : result) c = static_cast<char>('a' + random.below(2));
    return result;
  };
  TextFinder finder;
  std::vector<std::string> sought;
  for (int i = 0; i < 200; ++i) {
    sought.push_back(text(TextFinder::least_contained - 2 + random.below(6)));
    finder.add(sought.back());
  }
  for (int round = 0; round < 50; ++round) {
    std::string document = text(40) + sought[random.below(sought.size())] + text(random.below(40));
    std::vector<std::uint32_t> expected;
    for (std::uint32_t i = 0; i < sought.size(); ++i) {
      if (sought[i].size() < TextFinder::least_contained) continue;
      if (document.find(sought[i]) != std::string::npos) expected.push_back(i);
    }
    CHECK(finder.contained_in(document) == expected);
  }
}

}  // namespace
}  // namespace prefgrid
