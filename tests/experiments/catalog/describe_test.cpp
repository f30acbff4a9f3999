#include "experiments/catalog/describe.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace prefgrid;  // NOLINT: tests only

namespace {

const std::string docs_file = std::string(PREFGRID_SOURCE_DIR) + "/docs/spec.md";
const std::string start_mark =
    "<!-- generated from the catalogue: tests/experiments/catalog keeps it so -->\n";
const std::string end_mark = "<!-- end of generated part -->\n";

std::string read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE("docs/spec.md lists the fields of the catalogue") {
  const std::string text = read(docs_file);
  const std::size_t start = text.find(start_mark);
  const std::size_t end = text.find(end_mark);
  REQUIRE(start != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::string expected = text.substr(0, start) + start_mark + "\n" +
                               fields_markdown(catalog()) + "\n" + text.substr(end);
  if (std::getenv("PREFGRID_UPDATE") != nullptr) {
    std::ofstream(docs_file, std::ios::binary) << expected;
    return;
  }
  INFO("run this test with PREFGRID_UPDATE=1 to write docs/spec.md anew");
  CHECK((text == expected));
}

TEST_CASE("methods as JSON name every row with its fields and defaults") {
  const auto json = nlohmann::json::parse(methods_json(catalog()));
  REQUIRE(json["methods"].size() == catalog().methods.size());
  const auto lore = *std::find_if(json["methods"].begin(), json["methods"].end(),
                                  [](const auto& row) { return row["name"] == "lore"; });
  CHECK(lore["decoders"] == nlohmann::json({"args"}));
  const auto rank = *std::find_if(lore["fields"].begin(), lore["fields"].end(),
                                  [](const auto& field) { return field["name"] == "rank"; });
  CHECK(rank["type"] == "integer");
  CHECK(rank["default"] == 5);
  CHECK(rank["minimum"] == 1);
  CHECK(json["evaluation"]["fields"].back()["default"].size() == 7);
}

TEST_CASE("the table of methods fits a terminal and names every method") {
  const std::string table = methods_table(catalog());
  for (const MethodRow& row : catalog().methods) {
    CHECK(table.find("  " + std::string(row.name) + "  (version") != std::string::npos);
  }
  CHECK(table.find("rank = 5   (an integer from 1 to 256)") != std::string::npos);
}

TEST_CASE("allowed values read like a sentence") {
  CHECK(allowed_values({"a", FieldType::boolean, {}, 0, 0, {}, ""}) == "true or false");
  CHECK(allowed_values({"a", FieldType::integer, {}, 1, 8, {}, ""}) == "an integer from 1 to 8");
  CHECK(allowed_values({"a", FieldType::real, {}, 0, 0.5, {}, ""}) == "a number from 0 to 0.5");
  CHECK(allowed_values({"a", FieldType::text, {}, 0, 0, {"x", "y"}, ""}) == "one of x, y");
  CHECK(allowed_values({"a", FieldType::text, {}, 0, 0, {}, ""}) == "text");
}
