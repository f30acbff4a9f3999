// The keys of a small fixed grid must never move by accident: a moved key re-runs finished work.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/coordinator/plan/builders.h"

using namespace prefgrid;           // NOLINT: tests only
using namespace prefgrid::testing;  // NOLINT: tests only

TEST_CASE("the keys of the golden grid are what they were") {
  const std::string file = std::string(PREFGRID_SOURCE_DIR) + "/tests/vectors/plan_keys.json";
  const auto plan = plan_of(replaced(base_spec, "[0, 1]", "[0]"), users(2));
  REQUIRE(plan.ok());
  auto found = nlohmann::ordered_json::array();
  for (const PlannedJob& job : plan->jobs) {
    const CellLabel& cell = job.cells.front();
    found.push_back({{"kind", job.spec.kind},
                     {"method", cell.method},
                     {"config", cell.config},
                     {"backbone", cell.backbone},
                     {"policy", cell.policy},
                     {"user", cell.user},
                     {"key", job.key.hex()}});
  }
  if (std::getenv("PREFGRID_UPDATE") != nullptr) {
    std::ofstream(file) << found.dump(1) << "\n";
    return;
  }
  std::ifstream in(file);
  REQUIRE(in.good());
  const auto expected = nlohmann::ordered_json::parse(in);
  INFO("if a kind's version went up on purpose, run this test with PREFGRID_UPDATE=1");
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == expected[i]);
}

TEST_CASE("a grid of 100,000 jobs is planned in reasonable time") {
  const DatasetSummary summary = users(1'500);
  const auto spec = parse(base_spec);
  REQUIRE(spec.ok());
  const std::clock_t start = std::clock();  // of this process: other programs do not count
  const auto plan = make_plan(*spec, summary, digest(), catalog());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  REQUIRE(plan.ok());
  CHECK(plan->jobs.size() > 80'000);
  std::printf("planned %zu jobs in %.3f s of CPU time\n", plan->jobs.size(), seconds);
}
