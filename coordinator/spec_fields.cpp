#include "coordinator/spec_fields.h"

#include <algorithm>
#include <cmath>

#include "common/check.h"
#include "common/text.h"
#include "experiments/catalog/describe.h"

namespace prefgrid {
namespace {

constexpr std::size_t shown_problems = 20;
constexpr std::size_t name_length = 64;

// A scalar by the field's type, without its range.
Result<Value> typed(const Field& field, const YamlNode& node) {
  switch (field.type) {
    case FieldType::boolean: {
      PREFGRID_ASSIGN(const bool value, yaml_boolean(node));
      return Value(value);
    }
    case FieldType::integer: {
      PREFGRID_ASSIGN(const std::int64_t value, yaml_integer(node));
      return Value(value);
    }
    case FieldType::real: {
      PREFGRID_ASSIGN(const double value, yaml_real(node));
      return Value(value == 0 ? 0.0 : value);  // -0.0 means 0
    }
    case FieldType::text: {
      PREFGRID_ASSIGN(std::string value, yaml_text(node));
      return Value(std::move(value));
    }
  }
  PREFGRID_CHECK(false, "no such field type: " + std::to_string(static_cast<int>(field.type)));
}

bool in_range(const Field& field, const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    // Compared as double and as integer: 2^53 + 1 must not pass for 2^53.
    const auto number = static_cast<double>(*integer);
    const bool beyond = number == field.maximum && std::fabs(field.maximum) < 0x1p62 &&
                        *integer > static_cast<std::int64_t>(field.maximum);
    return number >= field.minimum && number <= field.maximum && !beyond;
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return *real >= field.minimum && *real <= field.maximum;
  }
  if (const auto* text = std::get_if<std::string>(&value); text && !field.choices.empty()) {
    return std::find(field.choices.begin(), field.choices.end(), *text) != field.choices.end();
  }
  return true;
}

std::string scalar_text(const YamlNode& node) {
  const auto* scalar = std::get_if<YamlScalar>(&node.content);
  return scalar ? quoted(scalar->text, 60) : node_kind(node);
}

std::string suggestion(const Field& field, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return "";
  const std::vector<std::string> known(field.choices.begin(), field.choices.end());
  return did_you_mean(*text, known);
}

SpannedField read_spanned(const Field& field, const YamlNode& node, bool lists_allowed,
                          Diagnostics& problems) {
  SpannedField out{&field, {}};
  const std::string name(field.name);
  const auto* list = std::get_if<YamlList>(&node.content);
  if (list == nullptr) {
    if (auto value = read_value(field, node, problems)) out.values.push_back(std::move(*value));
    return out;
  }
  if (!lists_allowed) {
    problems.report(node.mark, name + " is a list; it takes one value: " + allowed_values(field));
    return out;
  }
  if (list->empty()) {
    problems.report(node.mark, name + " is an empty list; give at least one value, or leave " +
                                   name + " out for its default");
  }
  for (const YamlNode& item : *list) {
    if (auto value = read_value(field, item, problems)) out.values.push_back(std::move(*value));
  }
  return out;
}

}  // namespace

void Diagnostics::report(YamlMark mark, const std::string& what) {
  found_.push_back({mark, what});
}

std::string Diagnostics::place(YamlMark mark) const {
  return file_name_ + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column);
}

Error Diagnostics::error() const {
  PREFGRID_CHECK(!clean(), "no problem was reported");
  std::vector<Found> sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Found& a, const Found& b) {
    return std::pair(a.mark.line, a.mark.column) < std::pair(b.mark.line, b.mark.column);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), shown_problems); ++i) {
    if (i > 0) text += '\n';
    text += place(sorted[i].mark) + ": " + sorted[i].what;
  }
  if (sorted.size() > shown_problems) {
    text += "\n... and " + std::to_string(sorted.size() - shown_problems) + " more";
  }
  return invalid_input(std::move(text));
}

std::string node_kind(const YamlNode& node) {
  if (std::holds_alternative<YamlNull>(node.content)) return "no value";
  if (std::holds_alternative<YamlScalar>(node.content)) return "a single value";
  return std::holds_alternative<YamlList>(node.content) ? "a list" : "a map";
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

std::string unknown_name(const std::string& what, const std::string& name, const std::string& where,
                         const std::vector<std::string>& known) {
  const std::string guess = did_you_mean(name, known);
  return "unknown " + what + " " + quoted(name, 60) + where + guess + (guess.empty() ? "; " : " ") +
         (known.empty() ? "none is allowed" : "allowed: " + joined_names(known));
}

bool valid_name(std::string_view name) {
  const auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || name.size() > name_length || !letter_or_digit(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return letter_or_digit(c) || c == '.' || c == '_' || c == '-';
  });
}

std::optional<Value> read_value(const Field& field, const YamlNode& node, Diagnostics& problems) {
  const std::string name(field.name);
  if (std::holds_alternative<YamlNull>(node.content)) {
    problems.report(node.mark, name + " has no value; it takes " + allowed_values(field));
    return std::nullopt;
  }
  auto value = typed(field, node);
  if (!value) {
    problems.report(node.mark,
                    name + " is " + scalar_text(node) + "; it takes " + allowed_values(field));
    return std::nullopt;
  }
  const auto* text = std::get_if<std::string>(&*value);
  if (text != nullptr && text->empty() && field.choices.empty()) {
    problems.report(node.mark, name + " is an empty text; give it a value" +
                                   (field.default_value ? ", or leave it out for its default, " +
                                                              value_text(*field.default_value)
                                                        : ""));
    return std::nullopt;
  }
  if (!in_range(field, *value)) {
    problems.report(node.mark,
                    name + " is " + scalar_text(node) + suggestion(field, *value) +
                        (suggestion(field, *value).empty() ? "; it takes " : " it takes ") +
                        allowed_values(field));
    return std::nullopt;
  }
  return *std::move(value);
}

std::vector<SpannedField> read_fields(const std::vector<Field>& fields, const YamlMap& map,
                                      YamlMark mark, const std::string& owner, bool lists_allowed,
                                      Diagnostics& problems) {
  std::vector<std::string> known;
  for (const Field& field : fields) known.emplace_back(field.name);
  for (const YamlEntry& entry : map) {
    if (find_field(fields, entry.key) == nullptr) {
      problems.report(entry.key_mark, unknown_name("field", entry.key, " of " + owner, known));
    }
  }
  std::vector<SpannedField> out;
  for (const Field& field : fields) {
    const auto entry = std::find_if(map.begin(), map.end(),
                                    [&](const YamlEntry& e) { return e.key == field.name; });
    if (entry != map.end()) {
      out.push_back(read_spanned(field, entry->value, lists_allowed, problems));
    } else if (!field.default_value) {
      problems.report(mark, owner + " has no " + std::string(field.name) +
                                "; give it: " + allowed_values(field));
    }
  }
  return out;
}

}  // namespace prefgrid
