#include "experiments/datasets/records.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "common/random.h"
#include "common/text.h"
#include "experiments/datasets/item_keys.h"

namespace prefgrid {
namespace {

using UserIndex = std::unordered_map<std::string_view, std::uint32_t>;

// Checks that need more than one record. Rows that fail are refused or dropped.
class Checker {
 public:
  Checker(Records& records, const AssembleOptions& options)
      : records_(records), options_(options) {}

  Result<void> check() {
    PREFGRID_TRY(check_users());
    place_items(records_.pairs, pair_items_);
    place_items(records_.completions, completion_items_);
    PREFGRID_TRY(keep(records_.pairs, [&](PairRecord& record) { return problem_of(record); }));
    PREFGRID_TRY(
        keep(records_.completions, [&](CompletionRecord& record) { return problem_of(record); }));
    return keep(records_.corpus, [&](CorpusRecord& record) { return problem_of(record); });
  }

 private:
  struct Problem {
    const char* reason = nullptr;  // counted under this; null: the row is fine
    std::string detail;
  };
  struct HeldPlace {
    Split split;
    std::uint32_t line;
  };
  struct Place {
    const std::string* user;
    Split split;
    std::uint32_t line;
  };

  // Where each item is held out farthest (test, then valid): there it stays, whatever the order of
  // the lines.
  template <class Record>
  static void place_items(const std::vector<Record>& rows,
                          std::unordered_map<std::uint64_t, HeldPlace>& places) {
    places.reserve(rows.size());
    for (const Record& row : rows) {
      const auto [place, fresh] =
          places.try_emplace(item_key(row.item), HeldPlace{row.item.split, row.line});
      if (!fresh && place->second.split < row.item.split) {
        place->second = {row.item.split, row.line};
      }
    }
  }

  Result<void> check_users() {
    for (const UserRecord& user : records_.users) {
      const auto [first, fresh] = users_.try_emplace(user.id, user.line);
      if (!fresh) {
        return bad_row(options_.file_name, user.line,
                       "user " + quoted(user.id) + " stands twice, first in line " +
                           std::to_string(first->second));
      }
      if (user.seen && user.given) {
        return bad_row(options_.file_name, user.line,
                       "field \"given\" of a seen user: its given set is all its train items; "
                       "leave the field out");
      }
    }
    return {};
  }

  template <class Record, class Find>
  Result<void> keep(std::vector<Record>& rows, Find problem_of_row) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      // Moved to its place first: the checks remember views of what they accepted.
      if (kept != i) rows[kept] = std::move(rows[i]);
      const Problem problem = problem_of_row(rows[kept]);
      if (problem.reason == nullptr) {
        ++kept;
      } else if (options_.on_bad_row == OnBadRow::error) {
        return bad_row(options_.file_name, rows[kept].line, problem.detail);
      } else {
        records_.skipped.add(problem.reason);
      }
    }
    rows.resize(kept);
    return {};
  }

  Problem unknown_user(const std::string& user) const {
    if (records_.users.empty() || users_.contains(user)) return {};
    return {"unknown user", "field \"user\": " + quoted(user) + " has no user record"};
  }
  static Problem duplicate(const std::string& id, std::uint32_t first_line) {
    return {"duplicate id", "field \"id\": " + quoted(id) + " stands twice, first in line " +
                                std::to_string(first_line)};
  }
  static Problem two_sides(Split split, const HeldPlace& first) {
    return {"one item on two sides of the split",
            std::string("field \"split\": this item is ") + to_string(split) + ", in line " +
                std::to_string(first.line) + " it is " + to_string(first.split) +
                "; an item is on one side for all users"};
  }

  Problem problem_of(const PairRecord& record) {
    if (Problem p = unknown_user(record.user); p.reason) return p;
    const PairItem& item = record.item;
    if (const auto first = pair_ids_.find(item.id); first != pair_ids_.end()) {
      return duplicate(item.id, first->second.line);
    }
    const Place place{&record.user, item.split, record.line};
    const HeldPlace& held = pair_items_.at(item_key(item));
    if (held.split != item.split) return two_sides(item.split, held);
    pair_ids_.emplace(item.id, place);
    return {};
  }

  Problem problem_of(const CompletionRecord& record) {
    if (Problem p = unknown_user(record.user); p.reason) return p;
    const CompletionItem& item = record.item;
    if (const auto twin = pair_ids_.find(item.id);
        twin != pair_ids_.end() &&
        (*twin->second.user != record.user || twin->second.split != item.split)) {
      return {"one id with two users or splits",
              "field \"id\": " + quoted(item.id) + " is a pair in line " +
                  std::to_string(twin->second.line) + ", with another user or split"};
    }
    if (const auto first = completion_ids_.find(item.id); first != completion_ids_.end()) {
      return duplicate(item.id, first->second);
    }
    const HeldPlace& held = completion_items_.at(item_key(item));
    if (held.split != item.split) return two_sides(item.split, held);
    completion_ids_.emplace(item.id, record.line);
    return {};
  }

  Problem problem_of(const CorpusRecord& record) {
    const auto [first, fresh] = corpus_ids_.try_emplace(record.item.id, record.line);
    return fresh ? Problem{} : duplicate(record.item.id, first->second);
  }

  Records& records_;
  const AssembleOptions& options_;
  std::unordered_map<std::string_view, std::uint32_t> users_;
  std::unordered_map<std::string_view, Place> pair_ids_;
  std::unordered_map<std::string_view, std::uint32_t> completion_ids_;
  std::unordered_map<std::string_view, std::uint32_t> corpus_ids_;
  std::unordered_map<std::uint64_t, HeldPlace> pair_items_;
  std::unordered_map<std::uint64_t, HeldPlace> completion_items_;
};

// Items of one key move together, and a completion with the pair of the same id; what a user record
// lists as given stays.
void hold_out_valid(Records& records, const AssembleOptions& options) {
  std::unordered_set<std::string_view> given_ids;
  for (const UserRecord& user : records.users) {
    if (user.given) given_ids.insert(user.given->begin(), user.given->end());
  }
  std::unordered_map<std::string_view, std::uint64_t> key_of_id;
  std::unordered_set<std::uint64_t> fixed;
  std::vector<std::uint64_t> pair_keys;
  std::vector<std::uint64_t> completion_keys;
  for (const PairRecord& record : records.pairs) {
    pair_keys.push_back(item_key(record.item));
    key_of_id.emplace(record.item.id, pair_keys.back());
    if (given_ids.contains(record.item.id)) fixed.insert(pair_keys.back());
  }
  for (const CompletionRecord& record : records.completions) {
    const auto twin = key_of_id.find(record.item.id);
    completion_keys.push_back(twin != key_of_id.end() ? twin->second : item_key(record.item));
    if (given_ids.contains(record.item.id)) fixed.insert(completion_keys.back());
  }
  const auto place = [&](auto& rows, const std::vector<std::uint64_t>& keys) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].item.split != Split::train || fixed.contains(keys[i])) continue;
      const auto draw = split_hash("valid", options.split_seed, std::to_string(keys[i])) % 100;
      if (draw < options.valid_percent) rows[i].item.split = Split::valid;
    }
  };
  place(records.pairs, pair_keys);
  place(records.completions, completion_keys);
}

bool has_valid(const Records& records) {
  const auto valid = [](const auto& record) { return record.item.split == Split::valid; };
  return std::ranges::any_of(records.pairs, valid) ||
         std::ranges::any_of(records.completions, valid);
}

void name_users(Records& records) {
  std::unordered_set<std::string> names;
  for (const auto& record : records.pairs) names.insert(record.user);
  for (const auto& record : records.completions) names.insert(record.user);
  for (const std::string& name : names) {
    UserRecord user;
    user.id = name;
    records.users.push_back(std::move(user));
  }
}

template <class Record, class Item>
void place_items(std::vector<Record>& rows, const UserIndex& users, std::vector<Item>& items) {
  for (Record& row : rows) row.item.user = users.at(row.user);
  std::ranges::sort(rows, [](const Record& a, const Record& b) {
    return std::tie(a.item.user, a.item.id) < std::tie(b.item.user, b.item.id);
  });
  items.reserve(rows.size());
  for (Record& row : rows) items.push_back(std::move(row.item));
}

template <class Item>
std::pair<std::uint32_t, std::uint32_t> range_of(const std::vector<Item>& items,
                                                 std::uint32_t user) {
  const auto range = std::ranges::equal_range(items, user, {}, &Item::user);
  return {static_cast<std::uint32_t>(range.begin() - items.begin()),
          static_cast<std::uint32_t>(range.end() - items.begin())};
}

template <class Item>
std::vector<std::uint32_t> train_items(const std::vector<Item>& items, std::uint32_t user,
                                       const std::unordered_set<std::string_view>* among) {
  std::vector<std::uint32_t> result;
  const auto [begin, end] = range_of(items, user);
  for (std::uint32_t i = begin; i < end; ++i) {
    if (items[i].split != Split::train) continue;
    if (among == nullptr || among->contains(items[i].id)) result.push_back(i);
  }
  return result;
}

// The first train ids in hash order, over both views.
std::vector<std::string> first_train_ids(const Dataset& dataset, std::uint32_t user,
                                         std::uint32_t count) {
  std::vector<std::string> ids;
  for (const auto i : train_items(dataset.pairs, user, nullptr)) {
    ids.push_back(dataset.pairs[i].id);
  }
  for (const auto i : train_items(dataset.completions, user, nullptr)) {
    ids.push_back(dataset.completions[i].id);
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::ranges::stable_sort(ids, {}, [](const std::string& id) { return stable_hash(id); });
  if (ids.size() > count) ids.resize(count);
  return ids;
}

Result<void> find_given(Dataset& dataset, std::uint32_t index, const UserRecord& record,
                        const AssembleOptions& options) {
  User& user = dataset.users[index];
  if (user.seen) {
    user.given_pairs = train_items(dataset.pairs, index, nullptr);
    user.given_completions = train_items(dataset.completions, index, nullptr);
    return {};
  }
  const std::vector<std::string> ids =
      record.given ? *record.given : first_train_ids(dataset, index, options.context_pairs);
  std::unordered_set<std::string_view> wanted;
  for (const std::string& id : ids) {
    if (!wanted.insert(id).second) {
      return bad_row(options.file_name, record.line, "field \"given\": " + quoted(id) + " twice");
    }
  }
  user.given_pairs = train_items(dataset.pairs, index, &wanted);
  user.given_completions = train_items(dataset.completions, index, &wanted);
  for (const auto i : user.given_pairs) wanted.erase(dataset.pairs[i].id);
  for (const auto i : user.given_completions) wanted.erase(dataset.completions[i].id);
  if (wanted.empty()) return {};
  return bad_row(options.file_name, record.line,
                 "field \"given\": " + quoted(*wanted.begin()) + " is no train item of user " +
                     quoted(user.id));
}

}  // namespace

void SkipCounter::add(const std::string& reason) {
  const bool room = counts_.size() < 50 || counts_.contains(reason);
  ++counts_[room ? reason : "other reasons"];
}

std::vector<SkippedRows> SkipCounter::rows() const {
  std::vector<SkippedRows> result;
  for (const auto& [reason, count] : counts_) result.push_back({reason, count});
  return result;
}

Error bad_row(const std::string& file_name, std::uint32_t line, const std::string& what) {
  const std::string place = line == 0 ? "" : ":" + std::to_string(line);
  return invalid_input(file_name + place + ": " + what);
}

std::uint64_t split_hash(std::string_view purpose, std::uint64_t seed, std::string_view id) {
  std::string text(purpose);
  text += '\n' + std::to_string(seed) + '\n';
  text += id;
  return stable_hash(text);
}

Result<LoadedDataset> assemble(Records records, const AssembleOptions& options) {
  PREFGRID_TRY(Checker(records, options).check());
  if (records.pairs.empty() && records.completions.empty()) {
    return bad_row(options.file_name, 0, "holds no pair and no completion");
  }
  if (options.valid_percent > 0 && !has_valid(records)) hold_out_valid(records, options);
  if (records.users.empty()) name_users(records);

  LoadedDataset loaded;
  Dataset& dataset = loaded.dataset;
  dataset.name = records.name;
  std::ranges::sort(records.users, {}, &UserRecord::id);
  UserIndex user_index;
  for (UserRecord& record : records.users) {
    user_index.emplace(record.id, static_cast<std::uint32_t>(dataset.users.size()));
    User user;
    user.id = record.id;
    user.seen = record.seen;
    user.attributes = std::move(record.attributes);
    dataset.users.push_back(std::move(user));
  }
  place_items(records.pairs, user_index, dataset.pairs);
  place_items(records.completions, user_index, dataset.completions);
  for (CorpusRecord& record : records.corpus) dataset.corpus.push_back(std::move(record.item));
  std::ranges::sort(dataset.corpus, [](const CorpusItem& a, const CorpusItem& b) {
    return std::tie(a.author, a.id) < std::tie(b.author, b.id);
  });
  for (std::uint32_t i = 0; i < dataset.users.size(); ++i) {
    PREFGRID_TRY(find_given(dataset, i, records.users[i], options));
  }
  loaded.summary = summarise(dataset);
  loaded.summary.skipped = records.skipped.rows();
  return loaded;
}

}  // namespace prefgrid
