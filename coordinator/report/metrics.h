// What the tables know of a metric: its unit, how it is shown, and which metrics a job must give.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/plan.h"

namespace prefgrid {

enum class Unit : std::uint8_t {
  percent,   // shares and accuracies: jobs give 0 to 1, every table shows 0 to 100
  times100,  // ROUGE, as its users write it: jobs give 0 to 100 already
  nats,
  ratio,
  count,
  reward,  // in the scale of the reward itself
  unknown
};

Unit unit_of(std::string_view metric);
const char* to_string(Unit unit);  // "percent", "x100", "nats", ...
const char* unit_mark(Unit unit);  // " (%)", behind a column's name; "" where the name says it
double table_scale(Unit unit);     // a job's number times this is the table's
std::string shown(double value, Unit unit);  // with as many decimals as make sense

// The name in the tables: a new user's fit and the shared training are different things, but their
// jobs call both train_loss_nats.
std::string table_name(const std::string& stage, const std::string& metric);

// A figure that every finished job of this kind gives, by its name in the tables. A cell all of
// whose jobs failed still has these rows, empty.
struct ExpectedFigure {
  std::string metric;
  std::optional<double> weight;
};
std::vector<ExpectedFigure> expected_figures(const PlannedJob& job);

}  // namespace prefgrid
