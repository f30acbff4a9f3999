#include "experiments/datasets/xorg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>
#include <variant>

#include "common/ids.h"
#include "common/random.h"
#include "common/sha256.h"
#include "experiments/datasets/commit_text.h"
#include "experiments/datasets/git_log.h"
#include "experiments/datasets/held_out.h"
#include "experiments/datasets/item_keys.h"
#include "experiments/datasets/text_file.h"
#include "experiments/metrics/style.h"
#include "experiments/metrics/text_metrics.h"

namespace prefgrid {
namespace {

struct PinnedPackage {
  const char* name;
  const char* newest_commit;
};
constexpr std::array<PinnedPackage, 4> packages = {{
    {"xserver-common", "af9111ac7fa399a5a33fbfa145060e1850f41e0e"},
    {"xserver-xorg-video-intel", "baec802b21387d04aebb10ac29e719a1800c5aa0"},
    {"libx11-6", "9949364ea761ab7efa2a9930ec7718f966a740c0"},
    {"libfontconfig1", "a919700fbde28c29ccdb1d2a8bceba80ade19e73"},
}};

struct Item {
  std::string id;      // of the commit
  std::string author;  // hashed
  std::string prompt;
  std::string subject;
  std::string flipped;
  std::uint64_t key = 0;  // equal texts, one item
  Split split = Split::train;
};

std::string hashed_author(const std::string& author) {
  return "u" + digest_of(author).short_hex();
}

// One habit turned round; which one, the hash says. Empty: there is nothing to turn.
std::string flip_habit(const std::string& subject, const std::string& id) {
  std::string flipped = split_hash("habit", 0, id) % 2 == 0 ? flip_initial_capital(subject)
                                                            : flip_final_stop(subject);
  return flipped == subject ? std::string() : flipped;
}

// A commit as an item, or why it is none.
std::variant<Item, const char*> item_from(const GitCommit& commit) {
  if (commit.merge) return "merge";
  if (!commit.is_text) return "text that is not UTF-8";
  if (is_bot(commit.author)) return "author is a bot";
  if (commit.message.empty()) return "no message";
  if (is_merge_subject(commit.message.front())) return "merge";
  const CommitText text = commit_text(commit.message);
  if (text.subject.empty()) return "no subject";
  if (count_code_points(text.body) < xorg_least_body) return "body shorter than 20 characters";
  Item item;
  item.flipped = flip_habit(text.subject, commit.id);
  if (item.flipped.empty()) return "subject without a habit to flip";
  item.id = commit.id;
  item.author = hashed_author(commit.author);
  item.prompt = text.body + "\n\nSubject:\n";
  item.subject = text.subject;
  CompletionItem completion;
  completion.prompt = item.prompt;
  completion.completion = item.subject;
  item.key = item_key(completion);
  return item;
}

class Importer {
 public:
  explicit Importer(const XorgOptions& options) : options_(options) {}

  Result<void> add(const XorgLog& log) {
    PREFGRID_ASSIGN(GitLog parsed, parse_git_log(log.text, log.file_name, options_.on_bad_row));
    for (const SkippedRows& rows : parsed.skipped.rows()) {
      for (std::uint64_t i = 0; i < rows.count; ++i) records_.skipped.add(rows.reason);
    }
    auto first = parsed.commits.begin();
    if (!log.newest_commit.empty()) {
      first = std::ranges::find(parsed.commits, log.newest_commit, &GitCommit::id);
      if (first == parsed.commits.end()) {
        return bad_row(
            log.file_name, 0,
            "the pinned commit " + log.newest_commit +
                " is not in this log; it is older than the data set, or another package");
      }
    }
    for (auto commit = first; commit != parsed.commits.end(); ++commit) add(*commit);
    return {};
  }

  Result<LoadedDataset> finish() {
    choose_users();
    mark_shared_texts();
    choose_splits();
    choose_unseen();
    make_records();
    AssembleOptions options;
    options.file_name = "xorg";
    return assemble(std::move(records_), options);
  }

 private:
  using ItemIndex = std::size_t;

  void add(const GitCommit& commit) {
    if (!ids_.insert(commit.id).second) {
      records_.skipped.add("commit of two packages");
      return;
    }
    std::variant<Item, const char*> outcome = item_from(commit);
    if (const auto* reason = std::get_if<const char*>(&outcome)) {
      records_.skipped.add(*reason);
    } else if (!keys_.insert(std::get<Item>(outcome).key).second) {
      records_.skipped.add("same body and subject as another commit");
    } else {
      items_.push_back(std::get<Item>(std::move(outcome)));
    }
  }

  void sort_by_hash(std::vector<ItemIndex>& items, const char* purpose, std::uint64_t seed) const {
    std::vector<std::pair<std::uint64_t, ItemIndex>> order;
    for (const ItemIndex i : items) {
      order.emplace_back(split_hash(purpose, seed, items_[i].id), i);
    }
    std::ranges::sort(order, [&](const auto& a, const auto& b) {
      return std::tie(a.first, items_[a.second].id) < std::tie(b.first, items_[b.second].id);
    });
    for (std::size_t i = 0; i < items.size(); ++i) items[i] = order[i].second;
  }

  std::set<std::string> chosen_authors(
      const std::map<std::string, std::vector<ItemIndex>>& by_author) const {
    std::vector<std::pair<std::size_t, std::string>> order;
    for (const auto& [author, items] : by_author) {
      if (items.size() < static_cast<std::size_t>(options_.min_items)) continue;
      order.emplace_back(items.size(), author);
    }
    std::ranges::sort(order, std::greater<>());
    const auto most = static_cast<std::size_t>(options_.max_users);
    if (most > 0 && order.size() > most) order.resize(most);
    std::set<std::string> chosen;
    for (auto& [items, author] : order) chosen.insert(std::move(author));
    return chosen;
  }

  // Authors with enough items become users, with at most max_items; the others are the corpus.
  void choose_users() {
    std::map<std::string, std::vector<ItemIndex>> by_author;
    for (ItemIndex i = 0; i < items_.size(); ++i) by_author[items_[i].author].push_back(i);
    const std::set<std::string> chosen = chosen_authors(by_author);
    for (auto& [author, items] : by_author) {
      if (!chosen.contains(author)) {
        for (const ItemIndex i : items) add_corpus(items_[i]);
        continue;
      }
      sort_by_hash(items, "kept", 0);
      while (items.size() > static_cast<std::size_t>(options_.max_items)) {
        records_.skipped.add("item beyond its user's max_items");
        items.pop_back();
      }
      users_.emplace(author, std::move(items));
    }
  }

  void add_corpus(const Item& item) {
    CorpusRecord record;
    record.item = {item.id, item.author, item.prompt, item.subject};
    records_.corpus.push_back(std::move(record));
  }

  // Items with one subject, and an item whose text quotes another's subject (a revert, a
  // follow-up): whichever side one is on, the other must be there too.
  void mark_shared_texts() {
    TextFinder finder;
    std::vector<ItemIndex> sought;
    for (const auto& [author, items] : users_) {
      for (const ItemIndex i : items) {
        finder.add(items_[i].subject);
        sought.push_back(i);
      }
    }
    for (const ItemIndex i : sought) {
      auto found = finder.contained_in(items_[i].prompt + items_[i].subject);
      for (const auto number : finder.equal_to(items_[i].subject)) found.push_back(number);
      for (const auto number : found) {
        if (sought[number] == i) continue;
        shared_.insert(i);
        shared_.insert(sought[number]);
      }
    }
  }

  void choose_splits() {
    const auto seed = static_cast<std::uint64_t>(options_.split_seed);
    for (auto& [author, items] : users_) {
      sort_by_hash(items, "split", seed);
      const auto share = [&](double part) {
        return static_cast<std::size_t>(std::ceil(part * static_cast<double>(items.size())));
      };
      std::size_t to_test = share(xorg_test_share);
      std::size_t to_valid = share(xorg_valid_share);
      for (const ItemIndex i : items) {
        if (shared_.contains(i)) continue;
        if (to_test > 0) {
          items_[i].split = Split::test;
          --to_test;
        } else if (to_valid > 0) {
          items_[i].split = Split::valid;
          --to_valid;
        }
      }
    }
  }

  void choose_unseen() {
    const auto seed = static_cast<std::uint64_t>(options_.split_seed);
    std::vector<std::pair<std::uint64_t, std::string>> order;
    for (const auto& [author, items] : users_) {
      order.emplace_back(split_hash("unseen", seed, author), author);
    }
    std::ranges::sort(order);
    const double count = std::round(options_.unseen_share * static_cast<double>(order.size()));
    order.resize(static_cast<std::size_t>(count));
    for (const auto& [hash, author] : order) unseen_.insert(author);
  }

  std::vector<std::string> given_ids(const std::vector<ItemIndex>& items) const {
    std::vector<std::pair<std::uint64_t, std::string>> order;
    for (const ItemIndex i : items) {
      if (items_[i].split != Split::train) continue;
      order.emplace_back(stable_hash(items_[i].id), items_[i].id);
    }
    std::ranges::sort(order);
    order.resize(std::min(order.size(), static_cast<std::size_t>(options_.context_pairs)));
    std::vector<std::string> ids;
    for (auto& [hash, id] : order) ids.push_back(std::move(id));
    return ids;
  }

  void make_records() {
    records_.name = "xorg";
    for (const auto& [author, items] : users_) {
      UserRecord user;
      user.id = author;
      user.seen = !unseen_.contains(author);
      if (!user.seen) user.given = given_ids(items);
      records_.users.push_back(std::move(user));
      for (const ItemIndex i : items) {
        const Item& item = items_[i];
        PairRecord pair;
        pair.item = {item.id, 0, item.prompt, item.subject, item.flipped, item.split};
        pair.user = author;
        records_.pairs.push_back(std::move(pair));
        CompletionRecord completion;
        completion.item = {item.id, 0, item.prompt, item.subject, item.split};
        completion.user = author;
        records_.completions.push_back(std::move(completion));
      }
    }
  }

  const XorgOptions& options_;
  Records records_;
  std::vector<Item> items_;
  std::unordered_set<std::string> ids_;
  std::unordered_set<std::uint64_t> keys_;
  std::map<std::string, std::vector<ItemIndex>> users_;  // by author
  std::unordered_set<ItemIndex> shared_;
  std::set<std::string> unseen_;
};

}  // namespace

Result<LoadedDataset> import_xorg(const std::vector<XorgLog>& logs, const XorgOptions& options) {
  Importer importer(options);
  for (const XorgLog& log : logs) PREFGRID_TRY(importer.add(log));
  return importer.finish();
}

Result<std::vector<XorgLog>> read_xorg_logs(const std::string& folder) {
  std::vector<XorgLog> logs;
  for (const PinnedPackage& package : packages) {
    const std::filesystem::path file =
        std::filesystem::path(folder) / (std::string(package.name) + ".changelog.gz");
    Result<std::string> text = read_text_file(file);
    if (!text.ok()) {
      Error error = text.error();
      if (error.code == ErrorCode::not_found) error.message += "; run ops/fetch-xorg.sh " + folder;
      return error;
    }
    logs.push_back({file.string(), *std::move(text), package.newest_commit});
  }
  return logs;
}

}  // namespace prefgrid
