#include "experiments/datasets/rows.h"

namespace prefgrid {
namespace {

constexpr double largest_seed = 9'007'199'254'740'992.0;  // 2^53: exact as a real

Field integer(std::string_view name, std::int64_t default_value, double minimum, double maximum,
              std::string_view help) {
  Field field;
  field.name = name;
  field.type = FieldType::integer;
  field.default_value = Value(default_value);
  field.minimum = minimum;
  field.maximum = maximum;
  field.help = help;
  return field;
}

Field text(std::string_view name, std::string_view help) {
  Field field;
  field.name = name;
  field.type = FieldType::text;
  field.help = help;
  return field;
}

Field on_bad_row() {
  Field field = text("on_bad_row", "refuse the data set at a bad row, or skip and count it");
  field.default_value = Value("error");
  field.choices = {"error", "skip"};
  return field;
}

Field split_seed() {
  return integer("split_seed", 1, 0, largest_seed, "draws splits and unseen users");
}

Field context_pairs() {
  return integer("context_pairs", 8, 1, 10'000, "items in an unseen user's given set");
}

}  // namespace

std::vector<DatasetRow> dataset_rows() {
  DatasetRow xorg;
  xorg.name = "xorg";
  xorg.summary = "subject lines of X.Org commits: completions, and pairs with one habit flipped";
  Field path = text("path", "folder that ops/fetch-xorg.sh has filled");
  path.default_value = Value("data/xorg");
  Field unseen_share;
  unseen_share.name = "unseen_share";
  unseen_share.type = FieldType::real;
  unseen_share.default_value = Value(0.5);
  unseen_share.minimum = 0;
  unseen_share.maximum = 1;
  unseen_share.help = "share of the users who are adapted to, not trained on";
  xorg.fields = {path,
                 integer("min_items", 50, 50, 100'000, "a user has at least so many items"),
                 integer("max_items", 150, 50, 100'000, "a user keeps at most so many items"),
                 integer("max_users", 0, 0, 100'000,
                         "at most so many users, those with the most items; 0: all"),
                 unseen_share,
                 context_pairs(),
                 split_seed(),
                 on_bad_row()};

  DatasetRow jsonl;
  jsonl.name = "jsonl";
  jsonl.summary = "a canonical file (docs/data.md), plain or gzip, as it is";
  jsonl.fields = {text("path", "the file"), context_pairs(), split_seed(), on_bad_row()};
  return {xorg, jsonl};
}

}  // namespace prefgrid
