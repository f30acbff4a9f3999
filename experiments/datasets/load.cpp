// load_dataset: from a spec's `dataset:` section to the importer that it names.
#include <algorithm>

#include "common/text.h"
#include "experiments/datasets/canonical.h"
#include "experiments/datasets/dataset.h"
#include "experiments/datasets/records.h"
#include "experiments/datasets/rows.h"
#include "experiments/datasets/text_file.h"
#include "experiments/datasets/xorg.h"

namespace prefgrid {
namespace {

// A section's fields, with the row's defaults. The section has been checked; what has not (a caller
// without the catalogue) is refused here too.
class Section {
 public:
  static Result<Section> open(const ValueMap& given) {
    const auto kind = given.find("kind");
    const auto* name = kind == given.end() ? nullptr : std::get_if<std::string>(&kind->second);
    if (name == nullptr) return invalid_input("field \"kind\" is missing");
    std::vector<std::string> known;
    for (DatasetRow& row : dataset_rows()) {
      if (row.name == *name) return Section(given, std::move(row));
      known.emplace_back(row.name);
    }
    return invalid_input("unknown kind " + quoted(*name) + did_you_mean(*name, known));
  }

  Result<void> check() const {
    for (const Field& field : row_.fields) {
      const std::string name(field.name);
      const auto found = given_.find(name);
      if (found == given_.end()) {
        if (!field.default_value) return invalid_input("field " + quoted(name) + " is missing");
        continue;
      }
      if (!has_type(found->second, field.type)) {
        return invalid_input("field " + quoted(name) + " has a wrong type");
      }
      if (!in_range(found->second, field)) {
        return invalid_input("field " + quoted(name) + " is out of range");
      }
    }
    return {};
  }

  const std::string& kind() const { return given_.at("kind").text(); }
  const std::string& text(std::string_view name) const { return value(name).text(); }
  std::int64_t integer(std::string_view name) const { return value(name).integer(); }
  double real(std::string_view name) const { return value(name).real(); }
  OnBadRow on_bad_row() const {
    return text("on_bad_row") == "skip" ? OnBadRow::skip : OnBadRow::error;
  }

 private:
  Section(const ValueMap& given, DatasetRow row) : given_(given), row_(std::move(row)) {}

  const Value& value(std::string_view name) const {
    const auto found = given_.find(std::string(name));
    if (found != given_.end()) return found->second;
    const auto field = std::ranges::find(row_.fields, name, &Field::name);
    PREFGRID_CHECK(field != row_.fields.end(), "undeclared field " + std::string(name));
    return *field->default_value;
  }

  ValueMap given_;
  DatasetRow row_;
};

Result<LoadedDataset> load_xorg(const Section& section) {
  XorgOptions options;
  options.min_items = section.integer("min_items");
  options.max_items = section.integer("max_items");
  options.max_users = section.integer("max_users");
  options.unseen_share = section.real("unseen_share");
  options.context_pairs = section.integer("context_pairs");
  options.split_seed = section.integer("split_seed");
  options.on_bad_row = section.on_bad_row();
  if (options.max_items < options.min_items) {
    return invalid_input("max_items is " + std::to_string(options.max_items) +
                         ", below min_items, " + std::to_string(options.min_items) +
                         ": nobody could be a user");
  }
  PREFGRID_ASSIGN(const std::vector<XorgLog> logs, read_xorg_logs(section.text("path")));
  return import_xorg(logs, options);
}

Result<LoadedDataset> load_jsonl(const Section& section) {
  const std::string& path = section.text("path");
  PREFGRID_ASSIGN(const std::string text, read_text_file(path));
  PREFGRID_ASSIGN(Records records, read_records(text, path, section.on_bad_row()));
  AssembleOptions options;
  options.file_name = path;
  options.on_bad_row = section.on_bad_row();
  options.context_pairs = static_cast<std::uint32_t>(section.integer("context_pairs"));
  options.split_seed = static_cast<std::uint64_t>(section.integer("split_seed"));
  options.valid_percent = 10;
  return assemble(std::move(records), options);
}

}  // namespace

Result<LoadedDataset> load_dataset(const ValueMap& given) {
  PREFGRID_ASSIGN(const Section section, Section::open(given));
  PREFGRID_TRY(section.check());
  return section.kind() == "xorg" ? load_xorg(section) : load_jsonl(section);
}

}  // namespace prefgrid
