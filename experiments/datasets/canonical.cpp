#include "experiments/datasets/canonical.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "common/limits.h"
#include "common/text.h"
#include "experiments/datasets/json_line.h"

namespace prefgrid {
namespace {

constexpr std::int64_t format_version = 1;
constexpr std::string_view header_field = "prefgrid_dataset";

const char* type_name(const JsonField& field) {
  constexpr std::array names = {"a boolean", "an integer", "a real", "a text", "a list"};
  return names[field.value.index()];
}

JsonField* find(std::vector<JsonField>& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &JsonField::name);
  return found == fields.end() ? nullptr : &*found;
}

// A field by type, moved out. Errors name it.
template <class T>
Result<T> take(std::vector<JsonField>& fields, std::string_view name, std::string_view type) {
  JsonField* field = find(fields, name);
  if (field == nullptr) return invalid_input("field " + quoted(name) + " is missing");
  T* value = std::get_if<T>(&field->value);
  if (value == nullptr) {
    return invalid_input("field " + quoted(name) + " is " + type_name(*field) + ", not " +
                         std::string(type));
  }
  return std::move(*value);
}

Result<std::string> take_text(std::vector<JsonField>& fields, std::string_view name) {
  PREFGRID_ASSIGN(std::string text, take<std::string>(fields, name, "a text"));
  if (trim(text).empty()) return invalid_input("field " + quoted(name) + " is empty");
  return text;
}

Result<std::string> take_id(std::vector<JsonField>& fields, std::string_view name) {
  PREFGRID_ASSIGN(std::string id, take_text(fields, name));
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(id, is_control)) {  // they would act on whoever's terminal shows it
    return invalid_input("field " + quoted(name) + " holds a control character: " + quoted(id));
  }
  if (id.size() <= limits::name_bytes) return id;
  return invalid_input("field " + quoted(name) + " is longer than " +
                       std::to_string(limits::name_bytes) + " bytes");
}

Result<Split> take_split(std::vector<JsonField>& fields) {
  PREFGRID_ASSIGN(const std::string text, take<std::string>(fields, "split", "a text"));
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    if (text == to_string(split)) return split;
  }
  return invalid_input("field \"split\" is " + quoted(text) + ", not train, valid or test");
}

Result<void> only(const std::vector<JsonField>& fields, std::span<const std::string> known,
                  std::string_view record) {
  for (const JsonField& field : fields) {
    if (std::ranges::find(known, field.name) != known.end()) continue;
    return invalid_input("field " + quoted(field.name) + " is unknown in a " + std::string(record) +
                         " record" + did_you_mean(field.name, known));
  }
  return {};
}

Result<UserRecord> take_user(std::vector<JsonField> fields) {
  UserRecord user;
  PREFGRID_ASSIGN(user.id, take_id(fields, "user"));
  PREFGRID_ASSIGN(user.seen, take<bool>(fields, "seen", "a boolean"));
  for (JsonField& field : fields) {
    if (field.name == "user" || field.name == "seen") continue;
    if (field.name == "given") {
      PREFGRID_ASSIGN(user.given, take<std::vector<std::string>>(fields, "given", "a list of ids"));
    } else if (auto* boolean = std::get_if<bool>(&field.value)) {
      user.attributes.emplace(field.name, *boolean);
    } else if (auto* integer = std::get_if<std::int64_t>(&field.value)) {
      user.attributes.emplace(field.name, *integer);
    } else if (auto* real = std::get_if<double>(&field.value)) {
      user.attributes.emplace(field.name, *real);
    } else if (auto* text = std::get_if<std::string>(&field.value)) {
      user.attributes.emplace(field.name, std::move(*text));
    } else {
      return invalid_input("attribute " + quoted(field.name) + " is a list");
    }
  }
  return user;
}

Result<PairRecord> take_pair(std::vector<JsonField> fields) {
  static const std::array<std::string, 6> known = {"id",     "user",     "prompt",
                                                   "chosen", "rejected", "split"};
  PREFGRID_TRY(only(fields, known, "pair"));
  PairRecord pair;
  PREFGRID_ASSIGN(pair.item.id, take_id(fields, "id"));
  PREFGRID_ASSIGN(pair.user, take_id(fields, "user"));
  PREFGRID_ASSIGN(pair.item.prompt, take_text(fields, "prompt"));
  PREFGRID_ASSIGN(pair.item.chosen, take_text(fields, "chosen"));
  PREFGRID_ASSIGN(pair.item.rejected, take_text(fields, "rejected"));
  PREFGRID_ASSIGN(pair.item.split, take_split(fields));
  if (pair.item.chosen == pair.item.rejected) {
    return invalid_input("field \"rejected\" equals field \"chosen\"");
  }
  return pair;
}

Result<CompletionRecord> take_completion(std::vector<JsonField> fields) {
  static const std::array<std::string, 5> known = {"id", "user", "prompt", "completion", "split"};
  PREFGRID_TRY(only(fields, known, "completion"));
  CompletionRecord record;
  PREFGRID_ASSIGN(record.item.id, take_id(fields, "id"));
  PREFGRID_ASSIGN(record.user, take_id(fields, "user"));
  PREFGRID_ASSIGN(record.item.prompt, take_text(fields, "prompt"));
  PREFGRID_ASSIGN(record.item.completion, take_text(fields, "completion"));
  PREFGRID_ASSIGN(record.item.split, take_split(fields));
  return record;
}

Result<CorpusRecord> take_corpus(std::vector<JsonField> fields) {
  static const std::array<std::string, 4> known = {"id", "author", "prompt", "completion"};
  PREFGRID_TRY(only(fields, known, "corpus"));
  CorpusRecord record;
  PREFGRID_ASSIGN(record.item.id, take_id(fields, "id"));
  PREFGRID_ASSIGN(record.item.author, take_id(fields, "author"));
  PREFGRID_ASSIGN(record.item.prompt, take_text(fields, "prompt"));
  PREFGRID_ASSIGN(record.item.completion, take_text(fields, "completion"));
  return record;
}

Result<std::string> take_header(std::vector<JsonField> fields) {
  static const std::array<std::string, 2> known = {std::string(header_field), "name"};
  PREFGRID_TRY(only(fields, known, "header"));
  PREFGRID_ASSIGN(const std::int64_t version,
                  take<std::int64_t>(fields, header_field, "an integer"));
  if (version != format_version) {
    return invalid_input("data set format " + std::to_string(version) + "; this build reads " +
                         std::to_string(format_version));
  }
  return take_id(fields, "name");
}

enum class RecordType { header, user, pair, completion, corpus };

RecordType record_type(std::vector<JsonField>& fields) {
  const auto has = [&](std::string_view name) { return find(fields, name) != nullptr; };
  if (has(header_field)) return RecordType::header;
  if (has("seen")) return RecordType::user;
  if (has("chosen") || has("rejected")) return RecordType::pair;
  if (has("author")) return RecordType::corpus;
  return RecordType::completion;
}

// Puts a record, or why it is none, into place.
template <class T>
Result<void> append(Result<T> record, std::uint32_t line, std::vector<T>& rows) {
  if (!record.ok()) return record.error();
  record->line = line;
  rows.push_back(*std::move(record));
  return {};
}

struct LineOutcome {
  Result<void> result;
  bool always_fatal = false;
};

LineOutcome read_line(std::string_view line, std::uint32_t number, Records& records) {
  if (line.starts_with("\xEF\xBB\xBF")) {
    return {invalid_input("starts with a byte order mark; save the file as UTF-8 without one"),
            true};
  }
  if (line.size() > limits::dataset_line_bytes) {
    return {invalid_input("longer than " + std::to_string(limits::dataset_line_bytes) + " bytes")};
  }
  if (trim(line).empty()) return {invalid_input("an empty line")};
  Result<std::vector<JsonField>> fields = parse_json_line(line);
  if (!fields.ok()) return {fields.error()};
  switch (record_type(*fields)) {
    case RecordType::header: {
      if (number != 1) return {invalid_input("a header that is not the first line"), true};
      Result<std::string> name = take_header(*std::move(fields));
      if (!name.ok()) return {name.error(), true};
      records.name = *std::move(name);
      return {};
    }
    case RecordType::user:
      return {append(take_user(*std::move(fields)), number, records.users), true};
    case RecordType::pair:
      return {append(take_pair(*std::move(fields)), number, records.pairs)};
    case RecordType::corpus:
      return {append(take_corpus(*std::move(fields)), number, records.corpus)};
    case RecordType::completion:
      return {append(take_completion(*std::move(fields)), number, records.completions)};
  }
  return {};
}

// What is counted: the message without the place and the text that are the line's own.
std::string reason_of(const std::string& message) {
  return message.substr(0, std::min(message.find(" at byte "), message.find(" is \"")));
}

// "pairs.jsonl.gz" -> "pairs".
std::string name_from(const std::string& file_name) {
  const std::string name = std::filesystem::path(file_name).filename().string();
  return name.substr(0, std::max<std::size_t>(name.find('.'), 1));
}

// --- writing ---

using Json = nlohmann::ordered_json;

Json json_of(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return value.text();
}

Json json_of(const User& user, const Dataset& dataset) {
  Json json = {{"user", user.id}, {"seen", user.seen}};
  if (!user.seen) {
    std::set<std::string_view> ids;
    for (const auto i : user.given_pairs) ids.insert(dataset.pairs[i].id);
    for (const auto i : user.given_completions) ids.insert(dataset.completions[i].id);
    json["given"] = ids;
  }
  for (const auto& [name, value] : user.attributes) json[name] = json_of(value);
  return json;
}

void add_line(const Json& json, std::string& text) {
  text += json.dump();
  text += '\n';
}

std::string write_lines(const Dataset& dataset) {
  std::string text;
  add_line({{header_field, format_version}, {"name", dataset.name}}, text);
  for (const User& user : dataset.users) add_line(json_of(user, dataset), text);
  for (const PairItem& item : dataset.pairs) {
    add_line({{"id", item.id},
              {"user", dataset.users[item.user].id},
              {"prompt", item.prompt},
              {"chosen", item.chosen},
              {"rejected", item.rejected},
              {"split", to_string(item.split)}},
             text);
  }
  for (const CompletionItem& item : dataset.completions) {
    add_line({{"id", item.id},
              {"user", dataset.users[item.user].id},
              {"prompt", item.prompt},
              {"completion", item.completion},
              {"split", to_string(item.split)}},
             text);
  }
  for (const CorpusItem& item : dataset.corpus) {
    add_line({{"id", item.id},
              {"author", item.author},
              {"prompt", item.prompt},
              {"completion", item.completion}},
             text);
  }
  return text;
}

}  // namespace

Result<Records> read_records(std::string_view json_lines, const std::string& file_name,
                             OnBadRow on_bad_row) {
  Records records;
  records.name = name_from(file_name);
  std::uint32_t number = 0;
  while (!json_lines.empty()) {
    const std::size_t end = std::min(json_lines.find('\n'), json_lines.size());
    std::string_view line = json_lines.substr(0, end);
    json_lines.remove_prefix(std::min(end + 1, json_lines.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (++number == UINT32_MAX) return bad_row(file_name, number, "too many lines");
    const LineOutcome outcome = read_line(line, number, records);
    if (outcome.result.ok()) continue;
    if (on_bad_row == OnBadRow::error || outcome.always_fatal) {
      return bad_row(file_name, number, outcome.result.error().message);
    }
    records.skipped.add(reason_of(outcome.result.error().message));
  }
  return records;
}

Result<Dataset> read_dataset(std::string_view json_lines, const std::string& file_name) {
  PREFGRID_ASSIGN(Records records, read_records(json_lines, file_name, OnBadRow::error));
  AssembleOptions options;
  options.file_name = file_name;
  PREFGRID_ASSIGN(LoadedDataset loaded, assemble(std::move(records), options));
  return std::move(loaded.dataset);
}

std::string write_dataset(const Dataset& dataset) {
  try {
    return write_lines(dataset);
  } catch (const nlohmann::json::exception& error) {  // every reader has checked the texts
    check_failed(__FILE__, __LINE__, "the data set's texts are UTF-8", error.what());
  }
}

}  // namespace prefgrid
