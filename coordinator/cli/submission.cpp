#include "coordinator/cli/submission.h"

#include "coordinator/cli/value_json.h"

namespace prefgrid {

Result<Submission> submit_experiment(Client& client, const PreparedExperiment& prepared,
                                     std::int32_t priority) {
  PREFGRID_ASSIGN(const ArtifactDigest digest, client.put_artifact(prepared.dataset_bytes));
  PREFGRID_ASSIGN(const Value answer,
                  client.request("submit", {{"name", prepared.spec.experiment},
                                            {"spec", to_value(prepared.spec)},
                                            {"spec_text", prepared.spec_text},
                                            {"dataset", to_value(prepared.dataset)},
                                            {"dataset_digest", digest.hex()},
                                            {"priority", std::int64_t{priority}}}));
  Submission submission;
  submission.experiment = integer_field(answer, "experiment");
  submission.is_new = field_or<bool>(answer, "new", false);
  submission.progress = field_or<ValueMap>(answer, "progress", {});
  return submission;
}

}  // namespace prefgrid
