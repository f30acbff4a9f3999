// The `xorg` data set: who writes which subject line, from the commit logs of four X.Org packages.
// Completions (body -> the real subject) and pairs (the subject against itself with one habit
// flipped) over the same commits and one split. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "experiments/datasets/dataset.h"
#include "experiments/datasets/records.h"

namespace prefgrid {

struct XorgOptions {
  std::int64_t min_items = 50;   // a user has at least so many
  std::int64_t max_items = 150;  // and at most so many, chosen by hash of the commit id
  std::int64_t max_users = 0;    // at most so many, those with the most items; 0: all
  double unseen_share = 0.5;     // of the users
  std::int64_t context_pairs = 8;
  std::int64_t split_seed = 1;
  OnBadRow on_bad_row = OnBadRow::error;
};

struct XorgLog {
  std::string file_name;  // for errors
  std::string text;       // the unpacked git log
  // Commits above this one's line are left out, so that later releases of a package give the same
  // data. Empty: none are.
  std::string newest_commit;
};

// Shares of a user's items, by hash; what shares its text with another item stays in train.
inline constexpr double xorg_test_share = 0.2;
inline constexpr double xorg_valid_share = 0.1;
inline constexpr std::size_t xorg_least_body = 20;  // characters

Result<LoadedDataset> import_xorg(const std::vector<XorgLog>& logs, const XorgOptions& options);

// The four packages and their pinned commits; FOLDER/<package>.changelog.gz as ops/fetch-xorg.sh
// leaves them. A missing file names that script.
Result<std::vector<XorgLog>> read_xorg_logs(const std::string& folder);

}  // namespace prefgrid
