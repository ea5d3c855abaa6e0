#pragma once

// The chief's history of evaluations: it decides which checkpoint is the best, and when the job
// ends early. Without `keep_best` and `early_stopping` there is no history.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "common/train/evaluation_keeper.h"
#include "common/train/supervisor.h"
#include "daemons/workerd/job_report.h"

namespace dtf::workerd {

// Logs what the file asks of evaluations in vain: metrics without data to evaluate, and a patience
// that the job is too short for. `examples`: of the training data.
void warnOfEvaluations(const cluster::TrainSpec& train, int64_t examples, uint32_t workers);

// Owns: the history.
// Threads: the training thread; kept(), saved() and goBack() on the supervisor's threads.
// Blocks: on the disk, and in `end`.
// Errors: goOnFrom(): as train::readEvaluations().
class JobEvaluations {
 public:
  // `end` requests the end of the job, as a signal to the chief does.
  JobEvaluations(const cluster::JobSpec& job, std::function<void()> end);

  // Call it when the ps hold values: the initial values (`begins`), or the values of `from`.
  void goOnFrom(const train::GoesOn& from, bool begins);

  // Call it before the start, when no worker has been sent to a step. `supervisor` must outlive the
  // training loop. Returns true if the job had ended early before: it ends again, and trains
  // nothing, which the log says.
  bool watch(train::Supervisor& supervisor);

  // Call it before the evaluation of the parameters at `step`: saves them, if the job keeps its
  // best checkpoint.
  void beforeEvaluation(uint64_t step);
  void add(uint64_t step, const train::Evaluation& evaluation);
  // All ps hold the values of `step` again: later evaluations are forgotten.
  void goBack(uint64_t step);
  void saved(uint64_t step, uint64_t checkpoint) { keeper_.saved(step, checkpoint); }
  // Adds the evaluation after the last step. `saved`: the step of its checkpoint; nullopt: it could
  // not be written.
  void addLast(uint64_t step, const train::Evaluation& evaluation, std::optional<uint64_t> saved);

  std::vector<uint64_t> kept() const { return keeper_.kept(); }
  // Sets `ended_early`, `best` and `best_metric` of a result.
  void tellOf(JobResult& job) const;
  const std::string& endedEarly() const { return ended_early_; }  // why; empty: it hasn't

 private:
  void endIfDue();

  const bool wanted_;
  const std::string keep_best_;  // a metric; empty: none is kept
  const std::function<void()> end_;
  train::EvaluationKeeper keeper_;
  train::Supervisor* supervisor_ = nullptr;
  std::string ended_early_;
  std::optional<uint64_t> resumed_;  // the step of the checkpoint it goes on from
};

}  // namespace dtf::workerd
