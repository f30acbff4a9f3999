#include "experiments/catalog/catalog.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace prefgrid;  // NOLINT: tests only

namespace {

bool fits(const Field& field, const Value& value) {
  switch (field.type) {
    case FieldType::boolean:
      return std::holds_alternative<bool>(value);
    case FieldType::integer:
      return std::holds_alternative<std::int64_t>(value) &&
             static_cast<double>(value.integer()) >= field.minimum &&
             static_cast<double>(value.integer()) <= field.maximum;
    case FieldType::real:
      return std::holds_alternative<double>(value) && value.real() >= field.minimum &&
             value.real() <= field.maximum;
    case FieldType::text:
      return std::holds_alternative<std::string>(value) &&
             (field.choices.empty() || std::find(field.choices.begin(), field.choices.end(),
                                                 value.text()) != field.choices.end());
  }
  return false;
}

void check_fields(const std::string& owner, const std::vector<Field>& fields) {
  std::set<std::string_view> names;
  for (const Field& field : fields) {
    CAPTURE(owner);
    CAPTURE(std::string(field.name));
    CHECK(names.insert(field.name).second);
    CHECK_FALSE(field.help.empty());
    if (field.default_value) CHECK(fits(field, *field.default_value));
  }
}

}  // namespace

TEST_CASE("every default has its field's type and lies in its range") {
  for (const MethodRow& row : catalog().methods) check_fields(std::string(row.name), row.fields);
  for (const DecoderRow& row : catalog().decoders) check_fields(std::string(row.name), row.fields);
  for (const KindRow& row : catalog().kinds) check_fields(std::string(row.name), row.fields);
  for (const DatasetRow& row : catalog().datasets) check_fields(std::string(row.name), row.fields);
  check_fields("evaluation", catalog().evaluation);
}

TEST_CASE("a default out of range is noticed by the check itself") {
  const Field field{"rank", FieldType::integer, Value(0), 1, 8, {}, "a planted mistake"};
  CHECK_FALSE(fits(field, *field.default_value));
}

TEST_CASE("a method's decoders exist and want a reward only of methods that have one") {
  for (const MethodRow& method : catalog().methods) {
    CAPTURE(std::string(method.name));
    CHECK_FALSE(method.decoders.empty());
    for (const std::string_view name : method.decoders) {
      const DecoderRow* decoder = catalog().decoder(name);
      REQUIRE(decoder != nullptr);
      CHECK((method.has_reward || !decoder->needs_reward));
    }
    if (method.reads_features) CHECK(find_field(method.fields, "features_from") != nullptr);
  }
}

TEST_CASE("job kinds are listed once, sorted, without the shared row of generate") {
  const std::vector<KindVersion> kinds = catalog().kind_versions();
  std::vector<std::string> names;
  for (const KindVersion& kind : kinds) names.push_back(kind.kind);
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  for (const char* expected :
       {"adapt.lore", "embed.bow", "embed.lm", "generate.args", "generate.greedy",
        "policy_accuracy", "pretrain", "rm_accuracy", "train.global_bt", "train.lore"}) {
    CAPTURE(expected);
    CHECK(std::find(names.begin(), names.end(), expected) != names.end());
    CHECK(catalog().version_of(expected).has_value());
  }
  CHECK_FALSE(catalog().version_of("generate").has_value());
  CHECK_FALSE(catalog().version_of("train.zero_shot").has_value());
}

TEST_CASE("the fields of a job kind are those of its rows together") {
  const std::vector<Field> args = catalog().fields_of("generate.args");
  CHECK(find_field(args, "weight") != nullptr);
  CHECK(find_field(args, "max_new_tokens") != nullptr);
  CHECK(find_field(catalog().fields_of("train.global_bt"), "max_prompt_tokens") != nullptr);
  CHECK(find_field(catalog().fields_of("adapt.lore"), "adapt_steps") != nullptr);
  CHECK(catalog().fields_of("generate.nothing").empty());
  CHECK(catalog().fields_of("nothing").empty());
}

TEST_CASE("a field's value is the given one, else its default") {
  const MethodRow* lore = catalog().method("lore");
  REQUIRE(lore != nullptr);
  CHECK(field_value(lore->fields, {{"rank", 7}}, "rank").integer() == 7);
  CHECK(field_value(lore->fields, {}, "rank").integer() == 5);
}
