// A data set on its way in: what an importer or the canonical reader found, users still by name,
// and the one place that checks it as a whole and puts it in order. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "experiments/datasets/dataset.h"

namespace prefgrid {

// `line` is where errors point; 0: nowhere.
struct UserRecord {
  std::string id;
  bool seen = true;
  std::optional<std::vector<std::string>> given;  // ids of G_u, unseen users only
  ValueMap attributes;
  std::uint32_t line = 0;
};
struct PairRecord {
  PairItem item;  // its user index is not set yet
  std::string user;
  std::uint32_t line = 0;
};
struct CompletionRecord {
  CompletionItem item;
  std::string user;
  std::uint32_t line = 0;
};
struct CorpusRecord {
  CorpusItem item;
  std::uint32_t line = 0;
};

// Reasons and how often, of rows that were left out. Bounded: beyond 50 reasons, "other reasons".
class SkipCounter {
 public:
  void add(const std::string& reason);
  std::vector<SkippedRows> rows() const;  // by reason

 private:
  std::map<std::string, std::uint64_t> counts_;
};

struct Records {
  std::string name;
  std::vector<UserRecord> users;  // none: everybody who has an item is a seen user
  std::vector<PairRecord> pairs;
  std::vector<CompletionRecord> completions;
  std::vector<CorpusRecord> corpus;
  SkipCounter skipped;
};

enum class OnBadRow { error, skip };

struct AssembleOptions {
  std::string file_name;  // for errors
  OnBadRow on_bad_row = OnBadRow::error;
  std::uint32_t context_pairs = 8;  // size of G_u of an unseen user whose record lists none
  // Where no item is valid: hold out this share of the train items by hash, in percent.
  std::uint32_t valid_percent = 0;
  std::uint64_t split_seed = 1;
};

// Refuses (or skips and counts): an unknown user, a duplicate id, one id with two users or splits
// in the two views, one item on two sides of the split. Always refuses wrong user records.
Result<LoadedDataset> assemble(Records records, const AssembleOptions& options);

// "FILE:LINE: what", as an error.
Error bad_row(const std::string& file_name, std::uint32_t line, const std::string& what);

// Draws for splits: uniform 64 bits from (purpose, seed, id).
std::uint64_t split_hash(std::string_view purpose, std::uint64_t seed, std::string_view id);

}  // namespace prefgrid
