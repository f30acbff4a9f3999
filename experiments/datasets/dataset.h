// The canonical dataset: what every importer makes and every job reads. Free of torch.
// One file of JSON Lines, UTF-8, named by its SHA-256; `read_dataset(write_dataset(d)) == d`.
// Record types, told apart by their fields (docs/data.md):
//   header      {"prefgrid_dataset": 1, "name"}           first line, optional
//   user        {"user","seen","given",...attributes}     given: ids of an unseen user's G_u
//   pair        {"id","user","prompt","chosen","rejected","split"}
//   completion  {"id","user","prompt","completion","split"}
//   corpus      {"id","author","prompt","completion"}     text of people who are no users
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "common/value.h"

namespace prefgrid {

enum class Split : std::uint8_t { train, valid, test };
const char* to_string(Split split);

struct User {
  std::string id;
  bool seen = true;
  std::vector<std::uint32_t> given_pairs;        // G_u: indices into Dataset::pairs
  std::vector<std::uint32_t> given_completions;  // and into Dataset::completions, both growing
  ValueMap attributes;                           // booleans, integers, reals, texts

  bool operator==(const User&) const = default;
};

struct PairItem {
  std::string id;
  std::uint32_t user = 0;  // index into Dataset::users
  std::string prompt;
  std::string chosen;
  std::string rejected;
  Split split = Split::train;

  bool operator==(const PairItem&) const = default;
};

struct CompletionItem {
  std::string id;
  std::uint32_t user = 0;
  std::string prompt;
  std::string completion;
  Split split = Split::train;

  bool operator==(const CompletionItem&) const = default;
};

struct CorpusItem {
  std::string id;
  std::string author;
  std::string prompt;
  std::string completion;

  bool operator==(const CorpusItem&) const = default;
};

struct Dataset {
  std::string name;                         // "xorg"
  std::vector<User> users;                  // sorted by id
  std::vector<PairItem> pairs;              // sorted by (user, id)
  std::vector<CompletionItem> completions;  // likewise
  std::vector<CorpusItem> corpus;           // sorted by (author, id)

  bool operator==(const Dataset&) const = default;

  // A user's items of one split, in the stable order that every job uses: by hash of the id.
  std::vector<std::uint32_t> pairs_of(std::uint32_t user, Split split) const;
  std::vector<std::uint32_t> completions_of(std::uint32_t user, Split split) const;
};

// What the planner and people need to know of a dataset; part of the submitted experiment.
struct UserSummary {
  std::string id;
  bool seen = true;
  std::uint32_t pairs[3] = {0, 0, 0};        // by Split
  std::uint32_t completions[3] = {0, 0, 0};  // by Split
  std::uint32_t given = 0;                   // items in G_u; one in both views counts once

  bool operator==(const UserSummary&) const = default;
};
struct SkippedRows {
  std::string reason;
  std::uint64_t count = 0;

  bool operator==(const SkippedRows&) const = default;
};
struct DatasetSummary {
  std::string name;
  std::vector<UserSummary> users;
  std::uint64_t corpus_items = 0;
  std::vector<SkippedRows> skipped;

  bool operator==(const DatasetSummary&) const = default;
};

struct LoadedDataset {
  Dataset dataset;
  DatasetSummary summary;
};

// Reads what a spec's `dataset:` section names (kind, path and options, typed and checked against
// the catalog's row). Errors name file and line.
Result<LoadedDataset> load_dataset(const ValueMap& section);

// The canonical file's bytes, and back. Reading checks every rule of docs/data.md.
std::string write_dataset(const Dataset& dataset);
Result<Dataset> read_dataset(std::string_view json_lines, const std::string& file_name);
DatasetSummary summarise(const Dataset& dataset);

// A table for people: users, items by split and view, what was left out and why.
std::string describe(const DatasetSummary& summary);

Value to_value(const DatasetSummary& summary);
Result<DatasetSummary> summary_from_value(const Value& value);

// Documents that a policy may be pretrained on: seen users' train items and corpus items, minus
// every one that holds a valid or test response (experiments/datasets/held_out.h), one author after
// the other. A pair gives its chosen side, where no completion says the same.
struct TrainingText {
  std::string author;
  std::string prompt;
  std::string completion;
};
std::vector<TrainingText> training_corpus(const Dataset& dataset);

// ASCII letters lower-cased, white space folded and trimmed: texts that are equal so are one item.
std::string normalise_text(std::string_view text);

}  // namespace prefgrid
