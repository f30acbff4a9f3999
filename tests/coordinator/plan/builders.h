// Short ways to a spec, a dataset summary and a plan.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/sha256.h"
#include "coordinator/plan.h"
#include "coordinator/spec.h"

namespace prefgrid::testing {

inline const std::string base_spec = R"(experiment: test
dataset: {kind: jsonl, path: data.jsonl}
models:
  tiny: {tokens: 1000}
  wide: {d_model: 192, heads: 6, kv_heads: 6, tokens: 2000}
methods:
  - zero_shot
  - icl: {shots: 2}
  - global_bt
  - lore: {features_from: bow, rank: [1, 5]}
  - lore: {features_from: global_bt, rank: 5}
decoding:
  - greedy
  - args: {k: 4}
evaluation: {policy_items: 2, generation_items: 2}
seeds: [0, 1]
)";

// The first occurrence only; aborts the test if there is none.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  PREFGRID_CHECK(at != std::string::npos, "not in the text: " + std::string(from));
  return text.replace(at, from.size(), to);
}

inline Result<ExperimentSpec> parse(const std::string& text, const Catalog& rows = catalog()) {
  PREFGRID_ASSIGN(const YamlNode root, parse_yaml(text, "spec.yaml"));
  return parse_spec(root, "spec.yaml", rows);
}

inline UserSummary user(std::string id, bool seen, std::uint32_t given = 4) {
  UserSummary out;
  out.id = std::move(id);
  out.seen = seen;
  for (std::uint32_t& count : out.pairs) count = 5;
  for (std::uint32_t& count : out.completions) count = 5;
  out.given = given;
  return out;
}

// users/2 seen ones and as many unseen ones: "u0" seen, "u1" unseen, ...
inline DatasetSummary users(std::size_t count) {
  DatasetSummary out;
  out.name = "test";
  for (std::size_t i = 0; i < count; ++i) {
    out.users.push_back(user("u" + std::to_string(i), i % 2 == 0));
  }
  return out;
}

inline ArtifactDigest digest(std::string_view content = "data") {
  return ArtifactDigest{sha256(content)};
}

inline Result<Plan> plan_of(const std::string& text, const DatasetSummary& summary = users(4),
                            const ArtifactDigest& data = digest(),
                            const Catalog& rows = catalog()) {
  PREFGRID_ASSIGN(const ExperimentSpec spec, parse(text, rows));
  return make_plan(spec, summary, data, rows);
}

inline std::size_t count_stage(const Plan& plan, std::string_view stage) {
  return static_cast<std::size_t>(
      std::count_if(plan.jobs.begin(), plan.jobs.end(),
                    [&](const PlannedJob& job) { return job.stage == stage; }));
}

}  // namespace prefgrid::testing
