#include "coordinator/cli/value_json.h"

namespace prefgrid {

nlohmann::ordered_json value_to_json(const Value& value) {
  using Json = nlohmann::ordered_json;
  if (const auto* list = std::get_if<ValueList>(&value)) {
    Json out = Json::array();
    for (const Value& item : *list) out.push_back(value_to_json(item));
    return out;
  }
  if (const auto* map = std::get_if<ValueMap>(&value)) {
    Json out = Json::object();
    for (const auto& [name, item] : *map) out[name] = value_to_json(item);
    return out;
  }
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return value.text();
}

}  // namespace prefgrid
