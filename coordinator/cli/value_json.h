// Values for people and programs: JSON, and lenient reads of an answer's fields.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "common/value.h"

namespace prefgrid {

nlohmann::ordered_json value_to_json(const Value& value);

// The field of a map if it is there with that type, else `otherwise`: answers of a newer
// coordinator may lack or add fields.
template <class T>
T field_or(const Value& value, const std::string& name, T otherwise) {
  const auto* map = std::get_if<ValueMap>(&value);
  if (!map) return otherwise;
  const auto found = map->find(name);
  if (found == map->end()) return otherwise;
  const T* typed = std::get_if<T>(&found->second);
  return typed ? *typed : otherwise;
}

inline std::string text_field(const Value& value, const std::string& name) {
  return field_or<std::string>(value, name, "");
}
inline std::int64_t integer_field(const Value& value, const std::string& name) {
  return field_or<std::int64_t>(value, name, 0);
}

}  // namespace prefgrid
