// What would be on disk: only whole, synced batches. Checks every batch against what a store must
// never hold.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/core.h"

namespace prefgrid::simulation {

// The one number that a job's result is: what any honest attempt finds.
double true_value(const JobKey& key);

class FakeStore {
 public:
  // "" or what the batch breaks.
  std::string write(const std::vector<Fact>& facts);

  std::vector<JobFact> jobs() const;
  const JobFact* job(const JobKey& key) const;
  bool done(const JobKey& key) const;
  bool leased(const LeaseId& lease) const;  // that attempt was issued, durably
  bool dropped_as_cancelled(const LeaseId& lease) const { return dropped_.contains(lease); }
  std::size_t results() const { return results_.size(); }

  std::vector<ExperimentSubmitted> experiments;
  std::set<ArtifactDigest> artifacts;

 private:
  std::string write_job(const JobFact& fact);
  void write_event(const EventFact& fact);
  std::string write_result(const ResultFact& fact);

  std::map<JobKey, JobFact> jobs_;
  std::map<JobKey, ResultFact> results_;
  std::set<LeaseId> issued_;
  std::set<LeaseId> dropped_;
};

}  // namespace prefgrid::simulation
