#include "coordinator/report/summary.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace prefgrid {
namespace {

constexpr std::array<std::string_view, 1> preference_metrics = {"rm_accuracy"};
constexpr std::array<std::string_view, 2> policy_metrics = {"policy_accuracy", "flip_rate"};
constexpr std::array<std::string_view, 4> generation_metrics = {"rouge1", "rouge2", "rougeL",
                                                                "style_match"};
constexpr std::array<std::string_view, 7> main_metrics = {
    "rm_accuracy", "policy_accuracy", "flip_rate", "rouge1", "rouge2", "rougeL", "style_match"};

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct LineKey {
  std::string method, config, backbone, policy, decoding;
  std::optional<double> weight;
  std::optional<std::uint64_t> seed;

  auto columns() const {
    return std::tie(method, config, backbone, policy, decoding, weight, seed);
  }
  bool operator<(const LineKey& other) const { return columns() < other.columns(); }
};
using Line = std::map<std::string, const ResultRow*, std::less<>>;
using Lines = std::map<LineKey, Line>;

LineKey key_of(const ResultRow& row) {
  return {row.method, row.config, row.backbone, row.policy, row.decoding, row.weight, row.seed};
}

bool same_reward(const LineKey& line, const ResultRow& row) {
  return line.method == row.method && line.config == row.config && line.backbone == row.backbone &&
         line.seed == row.seed && (row.policy.empty() || line.policy == row.policy);
}

// Adds the row to every line that it belongs to; to a line of its own if there is none. A policy
// row at a weight that nothing was decoded with belongs to the grid of weights in results.csv.
void attach(Lines& lines, const ResultRow& row, bool by_weight) {
  bool known = false;
  for (auto& [key, line] : lines) {
    if (!same_reward(key, row)) continue;
    known = true;
    if (!by_weight || key.weight == row.weight) line.emplace(row.metric, &row);
  }
  if (!known) lines[key_of(row)].emplace(row.metric, &row);
}

// Without generation, policy rows make the lines themselves, one a weight.
void attach_policy_rows(Lines& lines, const std::vector<const ResultRow*>& rows) {
  const Lines generated = lines;
  for (const ResultRow* row : rows) {
    const bool decoded = std::any_of(generated.begin(), generated.end(), [&](const auto& entry) {
      return same_reward(entry.first, *row);
    });
    if (decoded) {
      attach(lines, *row, true);
    } else {
      lines[key_of(*row)].emplace(row->metric, row);
    }
  }
}

Lines join_rows(const std::vector<const ResultRow*>& rows) {
  Lines lines;
  std::vector<const ResultRow*> policy_rows;
  for (const ResultRow* row : rows) {
    if (contains(generation_metrics, row->metric)) lines[key_of(*row)].emplace(row->metric, row);
    if (contains(policy_metrics, row->metric)) policy_rows.push_back(row);
  }
  attach_policy_rows(lines, policy_rows);
  for (const ResultRow* row : rows) {
    if (contains(preference_metrics, row->metric)) attach(lines, *row, false);
  }
  return lines;
}

SummaryFigure figure(const ResultRow& row) {
  return {row.value, row.ci_low, row.ci_high, row.n_users, row.users_missing};
}

SummaryBlock make_block(std::string title, const Lines& lines,
                        const std::vector<std::string>& metrics) {
  SummaryBlock block{std::move(title), metrics, {}};
  for (const auto& [key, line] : lines) {
    SummaryLine out{key.method,   key.config, key.backbone, key.policy,
                    key.decoding, key.weight, key.seed,     {}};
    for (const std::string& metric : metrics) {
      const auto found = line.find(metric);
      out.figures.push_back(found == line.end() ? std::nullopt
                                                : std::optional(figure(*found->second)));
    }
    block.lines.push_back(std::move(out));
  }
  return block;
}

SummaryBlock group_block(const std::string& group, const std::vector<const ResultRow*>& rows) {
  std::vector<std::string> metrics;
  for (std::string_view metric : main_metrics) {
    const bool present = std::any_of(rows.begin(), rows.end(),
                                     [&](const ResultRow* row) { return row->metric == metric; });
    if (present) metrics.emplace_back(metric);
  }
  std::uint64_t users = 0;
  for (const ResultRow* row : rows) {
    users = std::max(users, row->n_users + row->users_missing);
  }
  return make_block(group + " users (" + std::to_string(users) + ")", join_rows(rows), metrics);
}

SummaryBlock model_block(const std::vector<const ResultRow*>& rows) {
  Lines lines;
  std::set<std::string> metrics;
  for (const ResultRow* row : rows) {
    lines[key_of(*row)].emplace(row->metric, row);
    metrics.insert(row->metric);
  }
  return make_block("models and training", lines, {metrics.begin(), metrics.end()});
}

}  // namespace

std::vector<SummaryBlock> summarise(const ResultTable& table) {
  std::map<std::string, std::vector<const ResultRow*>> groups;
  for (const ResultRow& row : table.rows) groups[row.user_group].push_back(&row);
  std::vector<SummaryBlock> blocks;
  for (const auto& [group, rows] : groups) {
    if (!group.empty()) blocks.push_back(group_block(group, rows));
  }
  if (const auto models = groups.find(""); models != groups.end()) {
    blocks.push_back(model_block(models->second));
  }
  return blocks;
}

}  // namespace prefgrid
