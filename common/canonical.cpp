#include "common/canonical.h"

#include <bit>
#include <cmath>
#include <string_view>

#include "common/limits.h"
#include "common/sha256.h"
#include "common/text.h"

namespace prefgrid {
namespace {

class Encoder {
 public:
  void number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xFF);
  }
  void raw(std::string_view bytes) { out_ += bytes; }
  void text(std::string_view text) {
    number(text.size(), 8);
    out_ += text;
  }

  // `path` names the value in errors: "parameters.layers[2]".
  Result<void> value(const Value& value, const std::string& path, std::size_t depth) {
    if (depth > limits::value_depth) return invalid_input(path + " is nested too deeply");
    if (const auto* boolean = std::get_if<bool>(&value)) {
      raw("b");
      number(*boolean ? 1 : 0, 1);
    } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      raw("i");
      number(static_cast<std::uint64_t>(*integer), 8);
    } else if (const auto* real = std::get_if<double>(&value)) {
      if (!std::isfinite(*real)) {
        return invalid_input(path + " is " + format_double(*real) + ", a finite number is needed");
      }
      raw("r");
      number(std::bit_cast<std::uint64_t>(*real == 0 ? 0.0 : *real), 8);
    } else if (const auto* words = std::get_if<std::string>(&value)) {
      raw("t");
      text(*words);
    } else if (const auto* list = std::get_if<ValueList>(&value)) {
      raw("l");
      number(list->size(), 8);
      for (std::size_t i = 0; i < list->size(); ++i) {
        PREFGRID_TRY(this->value((*list)[i], path + "[" + std::to_string(i) + "]", depth + 1));
      }
    } else {
      raw("m");
      PREFGRID_TRY(map(value.map(), path, depth));
    }
    return {};
  }

  // std::map<std::string> iterates in the order of the keys' unsigned bytes.
  Result<void> map(const ValueMap& map, const std::string& path, std::size_t depth) {
    number(map.size(), 8);
    for (const auto& [key, value] : map) {
      text(key);
      PREFGRID_TRY(this->value(value, std::string(path).append(".").append(key), depth + 1));
    }
    return {};
  }

  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

void encode_input(Encoder& encoder, const std::string& name, const InputRef& input) {
  encoder.text(name);
  encoder.raw(std::holds_alternative<JobKey>(input) ? "J" : "F");
  std::visit(
      [&](const auto& id) {
        encoder.raw({reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
      },
      input);
}

}  // namespace

Result<std::string> canonical_encoding(const JobSpec& spec) {
  Encoder encoder;
  encoder.raw("prefgrid job\x01");
  encoder.text(spec.kind);
  encoder.number(spec.kind_version, 4);
  PREFGRID_TRY(encoder.map(spec.parameters, "parameters", 0));
  encoder.number(spec.inputs.size(), 8);
  for (const auto& [name, input] : spec.inputs) encode_input(encoder, name, input);
  encoder.raw(spec.seed ? "S" : "N");
  if (spec.seed) encoder.number(*spec.seed, 8);
  return encoder.take();
}

Result<std::string> canonical_encoding(const Value& value) {
  Encoder encoder;
  PREFGRID_TRY(encoder.value(value, "value", 0));
  return encoder.take();
}

Result<JobKey> job_key(const JobSpec& spec) {
  PREFGRID_ASSIGN(const std::string encoding, canonical_encoding(spec));
  return JobKey{sha256(encoding)};
}

}  // namespace prefgrid
