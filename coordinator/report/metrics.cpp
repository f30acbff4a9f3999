#include "coordinator/report/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "experiments/catalog/catalog.h"
#include "experiments/catalog/method_rows.h"

namespace prefgrid {
namespace {

struct MetricRow {
  std::string_view name;
  Unit unit;
};

constexpr std::array metric_rows = {
    MetricRow{"rm_accuracy", Unit::percent},
    MetricRow{"rm_accuracy_pooled", Unit::percent},
    MetricRow{"rm_tie_rate", Unit::percent},
    MetricRow{"policy_accuracy", Unit::percent},
    MetricRow{"policy_accuracy_per_token", Unit::percent},
    MetricRow{"policy_accuracy_base", Unit::percent},
    MetricRow{"policy_accuracy_full_vocabulary", Unit::percent},
    MetricRow{"flip_rate", Unit::percent},
    MetricRow{"forced_token_rate", Unit::percent},
    MetricRow{"style_match", Unit::percent},
    MetricRow{"exact", Unit::percent},
    MetricRow{"valid_accuracy", Unit::percent},
    MetricRow{"rouge1", Unit::times100},
    MetricRow{"rouge2", Unit::times100},
    MetricRow{"rougeL", Unit::times100},
    MetricRow{"length_ratio", Unit::ratio},
    MetricRow{"chosen_step", Unit::count},
    MetricRow{"skipped_items", Unit::count},
    MetricRow{"reward_scale", Unit::reward},
};

std::vector<double> weights_of(const PlannedJob& job) {
  const auto given = job.spec.parameters.find("weights");
  if (given == job.spec.parameters.end()) return policy_accuracy_weights();
  std::vector<double> weights;
  if (const auto* list = std::get_if<ValueList>(&given->second)) {
    for (const Value& item : *list) {
      if (const auto* weight = std::get_if<double>(&item)) weights.push_back(*weight);
    }
  }
  return weights;
}

std::vector<ExpectedFigure> policy_figures(const PlannedJob& job) {
  const MethodRow* method = catalog().method(job.cells.front().method);
  std::vector<std::optional<double>> weights = {std::nullopt};
  if (method != nullptr && method->has_reward) {
    const std::vector<double> listed = weights_of(job);
    weights.assign(listed.begin(), listed.end());
  }
  std::vector<ExpectedFigure> figures = {{"policy_accuracy_base", std::nullopt},
                                         {"policy_accuracy_full_vocabulary", std::nullopt},
                                         {"forced_token_rate", std::nullopt}};
  for (const auto& weight : weights) {
    for (const char* name : {"policy_accuracy", "policy_accuracy_per_token", "flip_rate"}) {
      figures.push_back({name, weight});
    }
  }
  return figures;
}

}  // namespace

Unit unit_of(std::string_view metric) {
  const auto row = std::find_if(metric_rows.begin(), metric_rows.end(),
                                [&](const MetricRow& r) { return r.name == metric; });
  if (row != metric_rows.end()) return row->unit;
  return metric.ends_with("_nats") ? Unit::nats : Unit::unknown;
}

const char* to_string(Unit unit) {
  constexpr std::array names = {"percent", "x100", "nats", "ratio", "count", "reward", "unknown"};
  return names.at(static_cast<std::size_t>(unit));
}

const char* unit_mark(Unit unit) {
  if (unit == Unit::percent) return " (%)";
  return unit == Unit::times100 ? " (×100)" : "";
}

double table_scale(Unit unit) {
  return unit == Unit::percent ? 100 : 1;
}

std::string shown(double value, Unit unit) {
  switch (unit) {
    case Unit::percent:
    case Unit::times100:
      return fmt::format("{:.1f}", value);
    case Unit::count:
      return fmt::format("{:.0f}", value);
    default:
      return fmt::format("{:.3f}", value);
  }
}

std::string table_name(const std::string& stage, const std::string& metric) {
  return stage == "adapt" && metric == "train_loss_nats" ? "adapt_loss_nats" : metric;
}

std::vector<ExpectedFigure> expected_figures(const PlannedJob& job) {
  const auto plain = [](std::initializer_list<const char*> names) {
    std::vector<ExpectedFigure> figures;
    for (const char* name : names) figures.push_back({name, std::nullopt});
    return figures;
  };
  if (job.stage == "pretrain") {
    return plain({"valid_loss_nats", "test_loss_nats", "unigram_loss_nats"});
  }
  if (job.stage == "train") return plain({"train_loss_nats"});
  if (job.stage == "adapt") return plain({"adapt_loss_nats"});
  if (job.stage == "rm_accuracy") return plain({"rm_accuracy", "rm_tie_rate"});
  if (job.stage == "policy_accuracy") return policy_figures(job);
  if (job.stage == "generate") {
    return plain({"rouge1", "rouge2", "rougeL", "style_match", "exact", "length_ratio"});
  }
  return {};
}

}  // namespace prefgrid
