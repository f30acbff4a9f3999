#include "tests/simulation/fake_store.h"

namespace prefgrid::simulation {

double true_value(const JobKey& key) {
  return key.bytes[5] + 256.0 * key.bytes[6];
}

std::string FakeStore::write(const std::vector<Fact>& facts) {
  for (const Fact& fact : facts) {
    std::string problem;
    if (const auto* job = std::get_if<JobFact>(&fact)) problem = write_job(*job);
    if (const auto* event = std::get_if<EventFact>(&fact)) write_event(*event);
    if (const auto* result = std::get_if<ResultFact>(&fact)) problem = write_result(*result);
    if (!problem.empty()) return problem;
  }
  for (const auto& [key, fact] : jobs_) {
    if (std::holds_alternative<DoneFact>(fact.state) != results_.contains(key)) {
      return "job " + key.short_hex() + " is done without a result, or has one and is not done";
    }
  }
  return "";
}

std::string FakeStore::write_job(const JobFact& fact) {
  const auto found = jobs_.find(fact.job);
  if (found != jobs_.end()) {
    if (fact.attempt < found->second.attempt) {
      return "attempts of job " + fact.job.short_hex() + " went back";
    }
    if (std::holds_alternative<DoneFact>(found->second.state) &&
        !std::holds_alternative<DoneFact>(fact.state)) {
      return "job " + fact.job.short_hex() + " was done and is no more";
    }
  }
  if (std::holds_alternative<LeasedFact>(fact.state)) issued_.insert({fact.job, fact.attempt});
  jobs_[fact.job] = fact;
  return "";
}

void FakeStore::write_event(const EventFact& fact) {
  const auto* dropped = std::get_if<history::ResultDropped>(&fact.what);
  if (dropped && fact.job && dropped->reason.find("cancelled") != std::string::npos) {
    dropped_.insert({*fact.job, fact.attempt});
  }
}

std::string FakeStore::write_result(const ResultFact& fact) {
  const std::string name = fact.job.short_hex();
  if (results_.contains(fact.job)) return "a second result of job " + name + " was committed";
  if (!issued_.contains({fact.job, fact.attempt})) {
    return "a result of job " + name + " under an attempt that was never issued was committed";
  }
  if (fact.result.metrics.size() != 1 || fact.result.metrics[0].sum != true_value(fact.job)) {
    return "a wrong result of job " + name + " was committed";
  }
  for (const ArtifactRef& artifact : fact.result.artifacts) {
    if (!artifacts.contains(artifact.digest)) {
      return "a result of job " + name + " was committed before its artefacts";
    }
  }
  results_.emplace(fact.job, fact);
  return "";
}

std::vector<JobFact> FakeStore::jobs() const {
  std::vector<JobFact> facts;
  for (const auto& [key, fact] : jobs_) facts.push_back(fact);
  return facts;
}

const JobFact* FakeStore::job(const JobKey& key) const {
  const auto found = jobs_.find(key);
  return found == jobs_.end() ? nullptr : &found->second;
}

bool FakeStore::done(const JobKey& key) const {
  return results_.contains(key);
}
bool FakeStore::leased(const LeaseId& lease) const {
  return issued_.contains(lease);
}

}  // namespace prefgrid::simulation
