// A field of a spec: its type, default and range. What a catalog row and a dataset row are made of.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/value.h"

namespace prefgrid {

enum class FieldType { boolean, integer, real, text };

// A field of a row, as a person writes it in a spec. Changing a default, or what a field means,
// bumps the version of every kind that reads it.
struct Field {
  std::string_view name;
  FieldType type = FieldType::integer;
  std::optional<Value> default_value;  // nullopt: must be given
  double minimum = 0;                  // of numbers, inclusive
  double maximum = 0;
  std::vector<std::string_view> choices;  // of texts; empty: any
  std::string_view help;                  // one line, with the unit
};

inline bool has_type(const Value& value, FieldType type) {
  switch (type) {
    case FieldType::boolean:
      return std::holds_alternative<bool>(value);
    case FieldType::integer:
      return std::holds_alternative<std::int64_t>(value);
    case FieldType::real:
      return std::holds_alternative<double>(value);
    case FieldType::text:
      return std::holds_alternative<std::string>(value);
  }
  return false;
}

// Of a value that has the field's type. NaN is in no range.
inline bool in_range(const Value& value, const Field& field) {
  if (field.type == FieldType::boolean) return true;
  if (field.type == FieldType::text) {
    return field.choices.empty() ||
           std::ranges::find(field.choices, value.text()) != field.choices.end();
  }
  const double number =
      field.type == FieldType::integer ? static_cast<double>(value.integer()) : value.real();
  return number >= field.minimum && number <= field.maximum;
}

}  // namespace prefgrid
