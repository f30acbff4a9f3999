#include <doctest/doctest.h>

#include <map>
#include <set>

#include "experiments/datasets/commit_text.h"
#include "experiments/datasets/git_log.h"
#include "experiments/datasets/leak_detector.h"
#include "experiments/datasets/xorg.h"
#include "experiments/metrics/style.h"

namespace prefgrid {
namespace {

std::string id_of(int number) {
  std::string digits = std::to_string(number);
  return std::string(40 - digits.size(), '0') + digits;
}

std::string commit(int number, const std::string& author, const std::string& message) {
  return "commit " + id_of(number) + "\nAuthor: " + author + "\nDate:   today\n\n" + message + "\n";
}

std::string plain(int number, const std::string& author) {
  const std::string n = std::to_string(number);
  return commit(number, author,
                "    dix: Change the thing of number " + n + " at last" +
                    "\n    \n    This explains at length why number " + n + " was wrong.\n");
}

std::map<std::string, std::uint64_t> skipped(const DatasetSummary& summary) {
  std::map<std::string, std::uint64_t> counts;
  for (const SkippedRows& rows : summary.skipped) counts[rows.reason] = rows.count;
  return counts;
}

const std::string ann = "Ann Example <ann@example.org>";

XorgOptions small_options() {
  XorgOptions options;
  options.min_items = 1;
  return options;
}

TEST_CASE(
    "a git log is parsed around CRLF, decorations, nested commit lines, notes and diffstats") {
  const std::string text = "commit " + id_of(1) +
                           " (HEAD -> master)\r\nMerge: 1 2\r\nAuthor: " + ann +
                           "\r\nDate: x\r\n\r\n    Subject\r\n    \r\n    commit " + id_of(9) +
                           "\r\n\r\nNotes:\r\n    no\r\n\r\n" + "commit " + id_of(2) +
                           "\nAuthor: " + ann + "\n\n    Only\n\n file.c | 2 +-\n    not this\n";
  const Result<GitLog> log = parse_git_log(text, "log", OnBadRow::error);
  REQUIRE(log.ok());
  REQUIRE(log->commits.size() == 2);
  CHECK(log->commits[0].merge);
  CHECK(log->commits[0].author == ann);
  CHECK(log->commits[0].message == std::vector<std::string>{"Subject", "", "commit " + id_of(9)});
  CHECK(log->commits[1].message == std::vector<std::string>{"Only"});
}

TEST_CASE("bad rows of a git log are refused with their line, or counted") {
  const std::string good = plain(1, ann);
  const std::vector<std::string> bad = {"commit 12ab\nAuthor: x\n\n    a\n",
                                        "commit " + id_of(2) + "\nDate: x\n\n    a\n",
                                        plain(1, ann)};
  for (const std::string& text : bad) {
    const Result<GitLog> refused = parse_git_log(good + text, "log", OnBadRow::error);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message.find("log:9: ") == 0);
    const Result<GitLog> counted =
        parse_git_log(good + text + plain(3, ann), "log", OnBadRow::skip);
    REQUIRE(counted.ok());
    CHECK(counted->commits.size() == 2);
    CHECK(counted->skipped.rows().size() == 1);
  }
  CHECK_FALSE(parse_git_log("", "log", OnBadRow::skip).ok());
  CHECK_FALSE(parse_git_log("hello\n", "log", OnBadRow::skip).ok());
}

TEST_CASE("trailers and addresses leave the text, words stay") {
  const CommitText text =
      commit_text({"Fix it for bob@x.org", "", "Why: it broke <ann@x.org> twice.",
                   "Signed-off-by: Ann <ann@x.org>", "Cc: x", "", "(cherry picked from commit 12)",
                   "a@b, @c and d@ stay"});
  CHECK(text.subject == "Fix it for");
  CHECK(text.body == "Why: it broke  twice.\n\n, @c and d@ stay");
  CHECK(is_bot("Ci <ci-bot@x.org>"));
  CHECK(is_bot("dependabot[bot] <1@x.org>"));
  CHECK_FALSE(is_bot("Jane Talbot <jane@abbott.org>"));
}

TEST_CASE("commits that are no items are left out and counted by reason") {
  const std::string text =
      plain(1, ann) + plain(2, ann) + "commit " + id_of(3) + "\nMerge: 1 2\nAuthor: " + ann +
      "\n\n    Merge it\n\n" +
      commit(4, ann, "    Merge branch 'x'\n    \n    With a body that is long enough.\n") +
      commit(5, "Robot <bot@x.org>", "    Bump\n    \n    With a body that is long enough.\n") +
      commit(6, ann, "") +
      commit(7, ann, "    Short\n    \n    Too short\n    Signed-off-by: A B\n") +
      commit(8, ann, "    caf\xE9\n    \n    With a body that is long enough.\n") +
      commit(9, ann,
             "    DIX: change THE thing of number 1 at last\n    \n    This explains at length  "
             "why number "
             "1 was wrong.\n");
  const Result<LoadedDataset> loaded = import_xorg({{"log", text, ""}}, small_options());
  REQUIRE(loaded.ok());
  CHECK(loaded->dataset.pairs.size() == 2);
  const std::map<std::string, std::uint64_t> expected = {
      {"author is a bot", 1},
      {"body shorter than 20 characters", 1},
      {"merge", 2},
      {"no message", 1},
      {"same body and subject as another commit", 1},
      {"text that is not UTF-8", 1}};
  CHECK(skipped(loaded->summary) == expected);
  CHECK(loaded->dataset.users[0].id != ann);
  CHECK(write_dataset(loaded->dataset).find('@') == std::string::npos);
}

TEST_CASE("a newer release of a package gives the same data down to the pinned commit") {
  std::string text = plain(1, ann) + plain(2, ann) + plain(3, ann);
  const XorgOptions options = small_options();
  const Result<LoadedDataset> old = import_xorg({{"log", text, id_of(1)}}, options);
  const Result<LoadedDataset> newer =
      import_xorg({{"log", plain(7, ann) + plain(8, ann) + text, id_of(1)}}, options);
  REQUIRE((old.ok() && newer.ok()));
  CHECK(write_dataset(old->dataset) == write_dataset(newer->dataset));
  const Result<LoadedDataset> missing = import_xorg({{"log", text, id_of(4)}}, options);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message.find(id_of(4)) != std::string::npos);
}

// Ten authors: eight with 50 to 155 items, two with fewer.
std::string many_authors() {
  std::string text;
  int number = 1;
  for (int author = 0; author < 10; ++author) {
    const std::string name =
        "N" + std::to_string(author) + " <n" + std::to_string(author) + "@x.org>";
    const int items = author < 8 ? 50 + 15 * author : 20;
    for (int i = 0; i < items; ++i) text += plain(number++, name);
    // A revert quotes another's subject: both must stay in train.
    text += commit(number, name,
                   "    Revert the last\n    \n    It undoes dix: Change the thing of number " +
                       std::to_string(number - 2) + " at last and no more\n");
    ++number;
  }
  return text;
}

TEST_CASE("max_users keeps the same few people whatever the split, and the others are corpus") {
  XorgOptions options;
  options.max_users = 3;
  const auto users_of = [&](std::int64_t split_seed) {
    options.split_seed = split_seed;
    const Result<LoadedDataset> loaded = import_xorg({{"log", many_authors(), ""}}, options);
    REQUIRE(loaded.ok());
    CHECK(check_leaks(loaded->dataset).empty());
    std::set<std::string> ids;
    for (const User& user : loaded->dataset.users) ids.insert(user.id);
    for (const CorpusItem& item : loaded->dataset.corpus) CHECK(!ids.contains(item.author));
    CHECK(loaded->dataset.corpus.size() > 42);
    return ids;
  };
  const std::set<std::string> users = users_of(1);
  CHECK(users.size() == 3);
  CHECK(users == users_of(2));
}

TEST_CASE("users, caps, splits and given sets follow the rules, and nothing leaks") {
  const Result<LoadedDataset> loaded = import_xorg({{"log", many_authors(), ""}}, XorgOptions{});
  REQUIRE(loaded.ok());
  const Dataset& dataset = loaded->dataset;
  CHECK(loaded->summary.users.size() == 8);
  CHECK(dataset.corpus.size() == 42);
  CHECK(skipped(loaded->summary)["item beyond its user's max_items"] == 6);
  int unseen = 0;
  for (const UserSummary& user : loaded->summary.users) {
    const auto items = user.pairs[0] + user.pairs[1] + user.pairs[2];
    CHECK(items <= 150);
    CHECK(user.pairs[2] >= 8);
    CHECK(user.pairs[1] >= 5);
    CHECK(std::equal(user.pairs, user.pairs + 3, user.completions));
    CHECK(user.given == (user.seen ? user.pairs[0] : 8));
    unseen += user.seen ? 0 : 1;
  }
  CHECK(unseen == 4);
  for (std::uint32_t u = 0; u < dataset.users.size(); ++u) {
    if (dataset.users[u].seen) continue;
    std::set<std::string> first;
    const auto train = dataset.pairs_of(u, Split::train);
    for (std::size_t i = 0; i < 8; ++i) first.insert(dataset.pairs[train[i]].id);
    for (const auto i : dataset.users[u].given_pairs) CHECK(first.contains(dataset.pairs[i].id));
    for (const auto i : dataset.users[u].given_completions) {
      CHECK(first.contains(dataset.completions[i].id));
    }
  }
  CHECK(check_leaks(dataset).empty());
}

TEST_CASE("the two views are the same commits, and a pair differs in one habit") {
  const Result<LoadedDataset> loaded = import_xorg({{"log", many_authors(), ""}}, XorgOptions{});
  REQUIRE(loaded.ok());
  const Dataset& dataset = loaded->dataset;
  REQUIRE(dataset.pairs.size() == dataset.completions.size());
  std::size_t capitals = 0;
  for (std::size_t i = 0; i < dataset.pairs.size(); ++i) {
    const PairItem& pair = dataset.pairs[i];
    CHECK(pair.id == dataset.completions[i].id);
    CHECK(pair.split == dataset.completions[i].split);
    CHECK(pair.chosen == dataset.completions[i].completion);
    CHECK(pair.prompt.ends_with("\n\nSubject:\n"));
    const bool capital = pair.rejected == flip_initial_capital(pair.chosen);
    CHECK((capital || pair.rejected == flip_final_stop(pair.chosen)));
    capitals += capital ? 1 : 0;
  }
  CHECK(capitals > dataset.pairs.size() / 3);
  CHECK(capitals < dataset.pairs.size() * 2 / 3);
}

TEST_CASE("the split follows its seed and not the order of the log's files") {
  const std::string text = many_authors();
  const std::string other = plain(90'001, ann);
  XorgOptions options;
  const auto bytes = [&](const std::vector<XorgLog>& logs) {
    return write_dataset(import_xorg(logs, options)->dataset);
  };
  const std::string first = bytes({{"a", text, ""}, {"b", other, ""}});
  CHECK(first == bytes({{"b", other, ""}, {"a", text, ""}}));
  options.split_seed = 2;
  CHECK(first != bytes({{"a", text, ""}, {"b", other, ""}}));
}

TEST_CASE("a missing log names the script that fetches it") {
  const auto logs = read_xorg_logs("/nonexistent-prefgrid");
  REQUIRE_FALSE(logs.ok());
  CHECK(logs.error().message.find("ops/fetch-xorg.sh") != std::string::npos);
}

}  // namespace
}  // namespace prefgrid
