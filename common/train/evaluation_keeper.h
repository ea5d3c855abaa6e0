#pragma once

// The chief's record of a job's evaluations while it trains. It names the checkpoints to keep, and
// decides when the job ends early.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/cluster/spec.h"
#include "common/train/evaluation_history.h"

namespace dtf::train {

// Owns: the history of the run, and its file.
// Threads: thread-safe. The training thread adds evaluations, the thread that saves adds their
// checkpoints, in either order; goBack() comes from any thread.
// Blocks: goOnFrom(), goBack(), add() and saved() on the disk.
// Errors: only goOnFrom() throws. A file that can't be written is logged, and the next evaluation
// tries again.
class EvaluationKeeper {
 public:
  // `checkpoints`: the folder of the run's checkpoints.
  EvaluationKeeper(std::filesystem::path checkpoints, const cluster::TrainSpec& train);

  // Reads the history up to `step`, from which the job resumes; 0 if it starts. Later evaluations
  // will come again.
  // Errors: as readEvaluations().
  void goOnFrom(uint64_t step);

  // Returns whether each evaluation needs a checkpoint of its own.
  bool wantsCheckpoints() const { return !keep_best_.empty(); }

  // The job went back to `step`: later evaluations come again, and have checkpoints of their own.
  void goBack(uint64_t step);

  // Replaces the evaluations from `step` on. `is_current` returns whether the parameters are still
  // the job's; if it has gone back, they aren't, and the evaluation is dropped. Null: they are.
  void add(uint64_t step, const Evaluation& evaluation,
           const std::function<bool()>& is_current = nullptr);
  void saved(uint64_t step, uint64_t checkpoint);

  // Returns the steps of the checkpoints that must stay: the best one, and one that is still being
  // evaluated.
  std::vector<uint64_t> kept() const;

  // Returns earlyStopReason(); empty if the job has no early_stopping.
  std::string whyEnd() const;

  // Returns the best evaluation that has a checkpoint; nullopt if there is none, or the job keeps
  // no best one.
  std::optional<PastEvaluation> best() const;

 private:
  void bound() DTF_REQUIRES(mutex_);
  void write() DTF_REQUIRES(mutex_);

  const std::filesystem::path checkpoints_;
  const std::string keep_best_;
  const std::optional<cluster::EarlyStoppingSpec> early_stopping_;
  mutable Mutex mutex_;
  std::vector<PastEvaluation> history_ DTF_GUARDED_BY(mutex_);
  // A saved checkpoint without an evaluation yet: the step of the evaluation and its own.
  std::optional<std::pair<uint64_t, uint64_t>> awaited_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::train
