#include "common/train/patience_check.h"

#include <fmt/format.h>

#include "common/base/text.h"
#include "common/train/epochs.h"

namespace dtf::train {

// The first evaluation is what others improve on, so it takes one more than `patience`.
std::string patienceFault(const cluster::TrainSpec& train, int64_t examples, uint32_t workers) {
  if (!train.early_stopping || train.eval_every_steps == 0) return "";
  if (train.epochs > 0 && examples == 0) return "";
  const uint64_t steps = stepsOf(train, examples, workers);
  const uint64_t evaluations = steps > 0 ? (steps - 1) / train.eval_every_steps : 0;
  const uint64_t patience = train.early_stopping->patience;
  if (patience < evaluations) return "";
  const std::string smaller =
      evaluations > 1 ? fmt::format("set patience to {} at most, or ", evaluations - 1) : "";
  return fmt::format(
      "early_stopping can't end the job: its patience is {}, and {} before the last of {} steps "
      "(eval.every_steps: {}); {}evaluate more often",
      amountText(patience, "evaluation"),
      evaluations == 1 ? "there is 1" : fmt::format("there are {}", evaluations), steps,
      train.eval_every_steps, smaller);
}

void warnOfPatience(const cluster::JobSpec& job, int64_t examples, yaml::Report& report) {
  const auto workers = static_cast<uint32_t>(job.cluster.worker.size());
  const std::string fault = patienceFault(*job.train, examples, workers);
  if (!fault.empty()) report.warning(report.placeOf(job.train->early_stopping->mark), fault);
}

}  // namespace dtf::train
