// Between the structs of common/job.h and their Cap'n Proto form, and the sealing that every frame
// and every stored value shares. For common/*messages*.cpp and coordinator/store* only: nobody else
// includes generated code.
//
// Cap'n Proto readers are lazy and throw at any getter, so all reading happens inside unseal(),
// which turns its exceptions into errors. The read() functions check sizes, enums, key lengths, the
// order of maps and UTF-8; what they return is safe to use. Pure functions, any thread.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/job.h"
#include "common/limits.h"
#include "common/result.h"
#include "common/value.h"
#include "schemas/job.capnp.h"

namespace prefgrid {

// [prefix][Cap'n Proto stream framing][CRC-32C of all before, little-endian]
std::string seal(capnp::MessageBuilder& message, std::string_view prefix = {});

// A sealed message whose checksum holds, copied to aligned words, with traversal and nesting
// limits set. Its readers may still throw: use unseal() where you can.
class Opened {
 public:
  // The first prefix_bytes are the caller's; `what` names the bytes in errors.
  static Result<Opened> open(std::string_view sealed, std::size_t prefix_bytes,
                             std::string_view what);

  template <class Schema>
  typename Schema::Reader root() {
    return reader_->getRoot<Schema>();
  }

 private:
  Opened() = default;
  kj::Array<capnp::word> words_;
  std::unique_ptr<capnp::FlatArrayMessageReader> reader_;  // borrows words_
};

Error damaged(std::string_view what, std::string_view detail);

// Opens, and returns convert(root): `Result<T> convert(Schema::Reader)`. Never throws.
template <class Schema, class Convert>
std::invoke_result_t<Convert, typename Schema::Reader> unseal(std::string_view sealed,
                                                              std::size_t prefix_bytes,
                                                              std::string_view what,
                                                              Convert&& convert) {
  try {
    PREFGRID_ASSIGN(Opened opened, Opened::open(sealed, prefix_bytes, what));
    return convert(opened.root<Schema>());
  } catch (const kj::Exception& problem) {
    return damaged(what, {problem.getDescription().begin(), problem.getDescription().size()});
  } catch (const std::exception& problem) {  // no memory, a too long string
    return damaged(what, problem.what());
  }
}

// --- leaves; `what` names the field in errors ---

// At most max_bytes, valid UTF-8.
Result<std::string> read_text(capnp::Text::Reader text, std::string_view what,
                              std::size_t max_bytes = limits::message_bytes);
Result<std::string> read_bytes(capnp::Data::Reader data, std::string_view what,
                               std::size_t max_bytes);
kj::StringPtr as_text(const std::string& text);
capnp::Data::Reader as_data(std::string_view bytes);

template <class Id>
capnp::Data::Reader id_data(const Id& id) {
  return {id.bytes.data(), id.bytes.size()};
}
template <class Id>
Result<Id> read_id(capnp::Data::Reader data, std::string_view what) {
  Id id;
  if (data.size() != id.bytes.size()) {
    return damaged(what, "a digest of " + std::to_string(data.size()) + " bytes");
  }
  std::copy(data.begin(), data.end(), id.bytes.begin());
  return id;
}

// convert(item) for each: Result<vector<T>> of Result<T> convert(Reader).
template <class ListReader, class Convert>
auto read_list(ListReader list, std::string_view what, Convert&& convert) {
  using Item = std::decay_t<decltype(convert(list[0]).value())>;
  using Items = Result<std::vector<Item>>;
  if (list.size() > limits::list_items) return Items(damaged(what, "too many items"));
  std::vector<Item> items;
  for (const auto& reader : list) {
    auto item = convert(reader);
    if (!item) return Items(item.error());
    items.push_back(*std::move(item));
  }
  return Items(std::move(items));
}

// convert(list[i], items[i]) for each.
template <class ListBuilder, class Items, class Convert>
void write_list(ListBuilder list, const Items& items, Convert&& convert) {
  unsigned index = 0;
  for (const auto& item : items) convert(list[index++], item);
}

// --- the structs ---

void write(schema::Value::Builder builder, const Value& value);
Result<Value> read(schema::Value::Reader reader);

void write(capnp::List<schema::Field>::Builder builder, const ValueMap& map);
Result<ValueMap> read(capnp::List<schema::Field>::Reader reader);

void write(schema::JobSpec::Builder builder, const JobSpec& spec);
Result<JobSpec> read(schema::JobSpec::Reader reader);

void write(schema::ArtifactRef::Builder builder, const ArtifactRef& artifact);
Result<ArtifactRef> read(schema::ArtifactRef::Reader reader);

void write(schema::NumericsProfile::Builder builder, const NumericsProfile& profile);
Result<NumericsProfile> read(schema::NumericsProfile::Reader reader);

void write(schema::JobResult::Builder builder, const JobResult& result);
Result<JobResult> read(schema::JobResult::Reader reader);

// Writing keeps the head of an over-long message and the tail of an over-long log.
void write(schema::JobFailure::Builder builder, const JobFailure& failure);
Result<JobFailure> read(schema::JobFailure::Reader reader);

// The size of list that initX() needs.
template <class Items>
unsigned list_size(const Items& items) {
  PREFGRID_CHECK(items.size() <= limits::list_items, std::to_string(items.size()) + " items");
  return static_cast<unsigned>(items.size());
}

}  // namespace prefgrid
