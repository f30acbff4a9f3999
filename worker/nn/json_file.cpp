#include "worker/nn/json_file.h"

#include <set>
#include <vector>

#include "common/files.h"
#include "common/text.h"

namespace prefgrid {

Result<nlohmann::json> parse_json(std::string_view text, const std::string& where) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> open;  // keys seen so far, one set an open object
  std::string duplicate;
  bool too_deep = false;
  const auto watch = [&](int depth, Event event, nlohmann::json& parsed) {
    if (depth > 64) too_deep = true;
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end && !open.empty()) open.pop_back();
    if (event == Event::key && !open.empty() && duplicate.empty()) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!open.back().insert(key).second) duplicate = quoted(key, 60);
    }
    return !too_deep;
  };
  try {
    nlohmann::json json = nlohmann::json::parse(text, watch);
    if (too_deep) return invalid_input(where + ": nested deeper than 64 levels");
    if (!duplicate.empty())
      return invalid_input(where + ": the key " + duplicate + " stands twice");
    return json;
  } catch (const nlohmann::json::exception& error) {
    return invalid_input(where + ": not valid JSON: " + error.what());
  }
}

Result<nlohmann::json> read_json_object(const std::filesystem::path& file, std::size_t max_bytes) {
  PREFGRID_ASSIGN(const std::string text, read_file(file, max_bytes));
  PREFGRID_ASSIGN(nlohmann::json json, parse_json(text, file.string()));
  if (!json.is_object()) {
    return invalid_input(file.string() + ": must hold a JSON object, not " + json.type_name());
  }
  return json;
}

}  // namespace prefgrid
