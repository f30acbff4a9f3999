// A check that cannot fail is a defect: each mistake planted in the core (or in the loop's order)
// must be found by the simulation's own eyes, without the core's invariants.
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "coordinator/core/planted_bug.h"
#include "tests/simulation/world.h"

namespace prefgrid {
namespace {

constexpr std::uint64_t seeds = 100;

// The first violation that the simulation sees, "" if none.
std::string first_violation(PlantedBug bug, bool send_before_persist = false) {
  planted_bug = bug;
  std::string found;
  for (std::uint64_t seed = 1; seed <= seeds && found.empty(); ++seed) {
    const auto outcome = simulation::simulate(
        {.seed = seed, .check_invariants = false, .send_before_persist = send_before_persist});
    if (!outcome.violation.empty()) {
      found = outcome.violation;
      std::printf("seed %llu finds: %s\n", static_cast<unsigned long long>(seed),
                  found.substr(0, 160).c_str());
    }
  }
  planted_bug = PlantedBug::none;
  return found;
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("without a planted bug the same seeds find nothing") {
  CHECK(first_violation(PlantedBug::none).empty());
}

TEST_CASE("sending before the batch is durable is found") {
  CHECK(mentions(first_violation(PlantedBug::none, true), "durable"));
}

TEST_CASE("attempts that start again after a restart are found") {
  CHECK_FALSE(first_violation(PlantedBug::attempts_restart_at_restore).empty());
}

TEST_CASE("a second commit is found") {
  CHECK(mentions(first_violation(PlantedBug::commit_twice), "second result"));
}

TEST_CASE("a result under an attempt that was never issued is found") {
  CHECK(mentions(first_violation(PlantedBug::accept_unissued_attempt), "never issued"));
}

TEST_CASE("leases that are forgotten with their worker are found") {
  CHECK(mentions(first_violation(PlantedBug::forget_lost_leases), "long ago"));
}

TEST_CASE("jobs that are condemned with a neighbour that kills its workers are found") {
  CHECK(mentions(first_violation(PlantedBug::suspects_share_workers), "ended as quarantined"));
}

TEST_CASE("jobs that wait for ever behind a quarantined one are found") {
  CHECK(mentions(first_violation(PlantedBug::quarantine_skips_dependants), "long ago"));
}

}  // namespace prefgrid
