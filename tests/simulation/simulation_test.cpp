// PREFGRID_TEST_SEED=n starts at another seed; PREFGRID_SIMULATION_SEEDS=n runs more of them.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/simulation/world.h"
#include "tests/support/seed.h"

namespace prefgrid {
namespace {

std::uint64_t seed_count() {
  const char* text = std::getenv("PREFGRID_SIMULATION_SEEDS");
  return text ? std::strtoull(text, nullptr, 10) : 200;
}

}  // namespace

TEST_CASE("whatever the cluster does, nothing acknowledged is lost and everything ends") {
  std::uint64_t crashes = 0;
  std::uint64_t kills = 0;
  std::uint64_t lost = 0;
  std::uint64_t reactions = 0;
  for (std::uint64_t i = 0; i < seed_count(); ++i) {
    const std::uint64_t seed = 1'000 * test_seed() + i;
    const simulation::Outcome outcome = simulation::simulate({.seed = seed});
    CHECK_MESSAGE(outcome.violation.empty(), "seed " << seed << ": " << outcome.violation);
    if (i % 10 == 0) {
      const simulation::Outcome again = simulation::simulate({.seed = seed});
      CHECK_MESSAGE(again.trace_hash == outcome.trace_hash,
                    "seed " << seed << " is not repeatable");
    }
    crashes += outcome.coordinator_crashes;
    kills += outcome.worker_kills;
    lost += outcome.lost_messages;
    reactions += outcome.reactions;
  }
  std::printf("simulated: %llu reactions, %llu coordinator crashes, %llu worker kills, %llu lost\n",
              static_cast<unsigned long long>(reactions), static_cast<unsigned long long>(crashes),
              static_cast<unsigned long long>(kills), static_cast<unsigned long long>(lost));
  // The faults must be there for the test to mean anything.
  CHECK(crashes > seed_count());
  CHECK(kills > seed_count());
  CHECK(lost > seed_count());
}

}  // namespace prefgrid
