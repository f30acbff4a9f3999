// Mistakes that the simulation must find. They exist only in the library prefgrid_core_planted,
// which a test links; in the product PREFGRID_PLANTED is the constant false.
#pragma once

namespace prefgrid {

enum class PlantedBug {
  none,
  attempts_restart_at_restore,  // a restored job forgets how many attempts were issued
  commit_twice,                 // a second result of a done job is committed too
  accept_unissued_attempt,      // a result is taken whatever attempt it names
  forget_lost_leases,           // a lost worker's leases are never given again
  quarantine_skips_dependants,  // jobs behind a quarantined one wait for ever
  suspects_share_workers,       // a job that may kill its worker gets neighbours again
};

#ifdef PREFGRID_PLANTED_BUGS
extern PlantedBug planted_bug;  // set by the test
#define PREFGRID_PLANTED(bug) (::prefgrid::planted_bug == ::prefgrid::PlantedBug::bug)
#else
#define PREFGRID_PLANTED(bug) false
#endif

}  // namespace prefgrid
