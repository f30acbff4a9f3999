// The typed tree that job parameters are made of: what a spec means, without its spelling.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace prefgrid {

struct Value;
using ValueList = std::vector<Value>;
using ValueMap = std::map<std::string, Value>;

// Integers and reals are different types: 1 and 1.0 have different JobKeys, so whoever builds a
// Value converts to the type that the catalog declares.
struct Value : std::variant<bool, std::int64_t, double, std::string, ValueList, ValueMap> {
  using variant::variant;
  Value(const char* text) : variant(std::string(text)) {}  // NOLINT: implicit; else bool wins
  Value(int number) : variant(std::int64_t{number}) {}     // NOLINT: implicit

  bool boolean() const { return std::get<bool>(*this); }
  std::int64_t integer() const { return std::get<std::int64_t>(*this); }
  double real() const { return std::get<double>(*this); }
  const std::string& text() const { return std::get<std::string>(*this); }
  const ValueList& list() const { return std::get<ValueList>(*this); }
  const ValueMap& map() const { return std::get<ValueMap>(*this); }
};

}  // namespace prefgrid
