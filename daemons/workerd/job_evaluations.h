#pragma once

// The chief's part in evaluations: their history keeps the best checkpoint, and ends the job when
// nothing improves any more. A job that asks for neither has no history.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "common/train/evaluation_keeper.h"
#include "common/train/supervisor.h"

namespace dtf::workerd {

// Owns: the history.
// Threads: the training thread's; kept() and saved() those of the supervisor.
// Blocks: on the disk, and in `end`.
// Errors: goOnFrom() those of train::readEvaluations().
class JobEvaluations {
 public:
  // `end` asks for the end of the job, as a signal to the chief does.
  JobEvaluations(const cluster::JobSpec& job, std::function<void()> end);

  // The ps hold values: the initial ones (`begins`), or those of `from`.
  void goOnFrom(const train::GoesOn& from, bool begins);

  // Before each run of the training loop, which `supervisor` must outlive. A job that had ended
  // early ends again.
  void watch(train::Supervisor& supervisor);

  // Before the evaluation of the parameters at `step`: they are saved, if the best ones are kept.
  void beforeEvaluation(uint64_t step);
  void add(uint64_t step, const train::Evaluation& evaluation);
  void saved(uint64_t step, uint64_t checkpoint) { keeper_.saved(step, checkpoint); }
  // Behind the last step, whose checkpoint is `saved`; nullopt: it could not be written.
  void addLast(uint64_t step, const train::Evaluation& evaluation, std::optional<uint64_t> saved);

  std::vector<uint64_t> kept() const { return keeper_.kept(); }
  std::optional<train::PastEvaluation> best() const { return keeper_.best(); }
  const std::string& endedEarly() const { return ended_early_; }  // why; empty: it hasn't

 private:
  void endIfDue();

  const bool wanted_;
  const std::function<void()> end_;
  train::EvaluationKeeper keeper_;
  train::Supervisor* supervisor_ = nullptr;
  std::string ended_early_;
};

}  // namespace dtf::workerd
