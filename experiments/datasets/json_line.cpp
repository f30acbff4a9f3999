#include "experiments/datasets/json_line.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/text.h"

namespace prefgrid {
namespace {

// nlohmann calls these as it reads; false stops it, and problem_ says why.
class LineReader {
 public:
  using Json = nlohmann::json;

  explicit LineReader(std::string_view line) : line_(line) {}

  bool null() { return fail("is null; leave the field out"); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(std::int64_t{value}); }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return fail("is beyond 64 bits");
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) {
    if (value.find('\0') != std::string::npos) return fail("holds a NUL character");
    if (!in_list_) return add(std::move(value));
    std::get<std::vector<std::string>>(fields_.back().value).push_back(std::move(value));
    return true;
  }
  bool binary(Json::binary_t&) { return fail("is binary"); }

  bool start_object(std::size_t) {
    if (started_) return fail("is an object; only texts, numbers, booleans and lists of texts");
    started_ = true;
    return true;
  }
  bool key(std::string& name) {
    name_ = std::move(name);
    if (std::ranges::any_of(fields_, [&](const JsonField& field) { return field.name == name_; })) {
      return fail("stands twice");
    }
    return true;
  }
  bool end_object() { return true; }
  bool start_array(std::size_t) {
    if (!started_) return fail("");
    if (in_list_) return fail("is a list of lists");
    add(std::vector<std::string>());
    in_list_ = true;
    return true;
  }
  bool end_array() {
    in_list_ = false;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) {
    problem_ = "not JSON at byte " + std::to_string(position);
    if (dynamic_cast<const Json::out_of_range*>(&error) != nullptr) {
      problem_ += ": a number too large";
    } else if (position == 0 || position > line_.size()) {
      problem_ += ": the line ends too early";
    } else if (!valid_utf8(line_)) {
      problem_ += ": not UTF-8";
    } else {
      problem_ += ", near " + quoted(line_.substr(position - 1), 20);
    }
    return false;
  }

  const std::string& problem() const { return problem_; }
  std::vector<JsonField> take() { return std::move(fields_); }

 private:
  template <class T>
  bool add(T value) {
    if (!started_) return fail("");
    if (in_list_) return fail("is a list of something else than texts");
    fields_.push_back({std::move(name_), std::move(value)});
    return true;
  }
  bool fail(std::string_view what) {
    if (!started_) {
      problem_ = "not a JSON object";
    } else {
      const std::string& name = in_list_ ? fields_.back().name : name_;
      problem_ = "field " + quoted(name) + " " + std::string(what);
    }
    return false;
  }

  std::string_view line_;
  std::vector<JsonField> fields_;
  std::string name_;
  std::string problem_;
  bool started_ = false;
  bool in_list_ = false;
};

}  // namespace

Result<std::vector<JsonField>> parse_json_line(std::string_view line) {
  LineReader reader(line);
  try {
    if (nlohmann::json::sax_parse(line.begin(), line.end(), &reader)) return reader.take();
  } catch (const nlohmann::json::exception&) {
    return invalid_input("not JSON");
  }
  return invalid_input(reader.problem());
}

}  // namespace prefgrid
