// What the planner and people see of a data set: counts, as values and as a table.
#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <string_view>

#include "common/text.h"
#include "experiments/datasets/dataset.h"

namespace prefgrid {
namespace {

Value counts_value(const std::uint32_t (&counts)[3]) {
  ValueList list;
  for (const std::uint32_t count : counts) list.emplace_back(std::int64_t{count});
  return list;
}

// Typed look-ups in a stored summary. Errors name the field.
template <class T>
Result<T> field(const ValueMap& map, const std::string& name) {
  const auto found = map.find(name);
  if (found == map.end() || !std::holds_alternative<T>(found->second)) {
    return invalid_input("data set summary: field " + quoted(name) +
                         " is missing or of a wrong type");
  }
  return std::get<T>(found->second);
}

Result<std::uint64_t> count_field(const ValueMap& map, const std::string& name,
                                  std::uint64_t maximum) {
  PREFGRID_ASSIGN(const std::int64_t count, field<std::int64_t>(map, name));
  if (count >= 0 && static_cast<std::uint64_t>(count) <= maximum) {
    return static_cast<std::uint64_t>(count);
  }
  return invalid_input("data set summary: field " + quoted(name) + " is out of range");
}

Result<std::array<std::uint32_t, 3>> split_counts(const ValueMap& map, const std::string& name) {
  PREFGRID_ASSIGN(const ValueList list, field<ValueList>(map, name));
  std::array<std::uint32_t, 3> counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto* count = i < list.size() ? std::get_if<std::int64_t>(&list[i]) : nullptr;
    if (list.size() != counts.size() || count == nullptr || *count < 0 || *count > UINT32_MAX) {
      return invalid_input("data set summary: field " + quoted(name) + " is not three counts");
    }
    counts[i] = static_cast<std::uint32_t>(*count);
  }
  return counts;
}

Result<UserSummary> user_from(const Value& value) {
  const auto* map = std::get_if<ValueMap>(&value);
  if (map == nullptr) return invalid_input("data set summary: a user is not a map");
  UserSummary user;
  PREFGRID_ASSIGN(user.id, field<std::string>(*map, "user"));
  PREFGRID_ASSIGN(user.seen, field<bool>(*map, "seen"));
  PREFGRID_ASSIGN(const auto pairs, split_counts(*map, "pairs"));
  PREFGRID_ASSIGN(const auto completions, split_counts(*map, "completions"));
  std::ranges::copy(pairs, user.pairs);
  std::ranges::copy(completions, user.completions);
  PREFGRID_ASSIGN(const std::uint64_t given, count_field(*map, "given", UINT32_MAX));
  user.given = static_cast<std::uint32_t>(given);
  return user;
}

Result<SkippedRows> skipped_from(const Value& value) {
  const auto* map = std::get_if<ValueMap>(&value);
  if (map == nullptr) return invalid_input("data set summary: skipped rows are not a map");
  SkippedRows skipped;
  PREFGRID_ASSIGN(skipped.reason, field<std::string>(*map, "reason"));
  PREFGRID_ASSIGN(skipped.count, count_field(*map, "count", INT64_MAX));
  return skipped;
}

std::string padded(std::uint64_t number, std::size_t width) {
  std::string text = std::to_string(number);
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

struct Totals {
  std::uint64_t users = 0;
  std::array<std::uint64_t, 3> pairs{};
  std::array<std::uint64_t, 3> completions{};
  std::uint64_t given = 0;
};

Totals totals(const DatasetSummary& summary, bool seen) {
  Totals sum;
  for (const UserSummary& user : summary.users) {
    if (user.seen != seen) continue;
    ++sum.users;
    for (std::size_t i = 0; i < 3; ++i) {
      sum.pairs[i] += user.pairs[i];
      sum.completions[i] += user.completions[i];
    }
    sum.given += user.given;
  }
  return sum;
}

void add_row(std::ostringstream& out, std::string_view name, const Totals& sum) {
  out << name << padded(sum.users, 8);
  for (const auto count : sum.pairs) out << padded(count, 9);
  for (const auto count : sum.completions) out << padded(count, 9);
  out << padded(sum.given, 9) << '\n';
}

}  // namespace

DatasetSummary summarise(const Dataset& dataset) {
  DatasetSummary summary;
  summary.name = dataset.name;
  summary.corpus_items = dataset.corpus.size();
  for (const User& user : dataset.users) {
    UserSummary row;
    row.id = user.id;
    row.seen = user.seen;
    std::set<std::string_view> given;
    for (const auto i : user.given_pairs) given.insert(dataset.pairs[i].id);
    for (const auto i : user.given_completions) given.insert(dataset.completions[i].id);
    row.given = static_cast<std::uint32_t>(given.size());
    summary.users.push_back(std::move(row));
  }
  for (const PairItem& item : dataset.pairs) {
    ++summary.users[item.user].pairs[static_cast<std::size_t>(item.split)];
  }
  for (const CompletionItem& item : dataset.completions) {
    ++summary.users[item.user].completions[static_cast<std::size_t>(item.split)];
  }
  return summary;
}

Value to_value(const DatasetSummary& summary) {
  ValueList users;
  for (const UserSummary& user : summary.users) {
    ValueMap row;
    row.emplace("user", user.id);
    row.emplace("seen", user.seen);
    row.emplace("pairs", counts_value(user.pairs));
    row.emplace("completions", counts_value(user.completions));
    row.emplace("given", std::int64_t{user.given});
    users.emplace_back(std::move(row));
  }
  ValueList skipped;
  for (const SkippedRows& rows : summary.skipped) {
    ValueMap row;
    row.emplace("reason", rows.reason);
    row.emplace("count", static_cast<std::int64_t>(rows.count));
    skipped.emplace_back(std::move(row));
  }
  ValueMap map;
  map.emplace("name", summary.name);
  map.emplace("users", std::move(users));
  map.emplace("corpus_items", static_cast<std::int64_t>(summary.corpus_items));
  map.emplace("skipped", std::move(skipped));
  return map;
}

Result<DatasetSummary> summary_from_value(const Value& value) {
  const auto* map = std::get_if<ValueMap>(&value);
  if (map == nullptr) return invalid_input("data set summary: not a map");
  DatasetSummary summary;
  PREFGRID_ASSIGN(summary.name, field<std::string>(*map, "name"));
  PREFGRID_ASSIGN(summary.corpus_items, count_field(*map, "corpus_items", INT64_MAX));
  PREFGRID_ASSIGN(const ValueList users, field<ValueList>(*map, "users"));
  for (const Value& user : users) {
    PREFGRID_ASSIGN(UserSummary row, user_from(user));
    summary.users.push_back(std::move(row));
  }
  PREFGRID_ASSIGN(const ValueList skipped, field<ValueList>(*map, "skipped"));
  for (const Value& rows : skipped) {
    PREFGRID_ASSIGN(SkippedRows row, skipped_from(rows));
    summary.skipped.push_back(std::move(row));
  }
  return summary;
}

std::string describe(const DatasetSummary& summary) {
  std::ostringstream out;
  out << "data set " << summary.name << '\n'
      << '\n'
      << "                  pairs:                     completions:\n"
      << "users           train    valid     test    train    valid     test    given\n";
  add_row(out, "seen  ", totals(summary, true));
  add_row(out, "unseen", totals(summary, false));
  out << '\n' << "corpus items of people who are no users: " << summary.corpus_items << '\n';
  for (const SkippedRows& rows : summary.skipped) {
    out << "left out: " << padded(rows.count, 8) << "  " << rows.reason << '\n';
  }
  return out.str();
}

}  // namespace prefgrid
