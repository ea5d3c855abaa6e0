#pragma once

// The chief's memory of a job's evaluations while it trains: it holds the best checkpoint, and says
// when the job ends early.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/cluster/spec.h"
#include "common/train/evaluation_history.h"

namespace dtf::train {

// Owns: the history of the run, and its file.
// Threads: thread-safe. The training thread adds evaluations, the thread that saves adds their
// checkpoints, in either order.
// Blocks: add() and saved() on the disk.
// Errors: none, but of goOnFrom(): a file that can't be written is logged, and tried again with the
// next evaluation.
class EvaluationKeeper {
 public:
  // `checkpoints`: the folder of the run's checkpoints.
  EvaluationKeeper(std::filesystem::path checkpoints, const cluster::TrainSpec& train);

  // Takes the history up to `step`, which the job goes on from; 0: the job begins. Later
  // evaluations come again.
  // Errors: those of readEvaluations().
  void goOnFrom(uint64_t step);

  // Whether each evaluation needs a checkpoint of its own.
  bool wantsCheckpoints() const { return !keep_best_.empty(); }

  // Replaces what is known of `step` and later ones: after a loss they come again.
  void add(uint64_t step, const Evaluation& evaluation);
  void saved(uint64_t step, uint64_t checkpoint);

  // Returns the steps of the checkpoints that must stay: the best one, and one that is still being
  // evaluated.
  std::vector<uint64_t> kept() const;

  // Returns earlyStopReason(); empty where the job has no early_stopping.
  std::string whyEnd() const;

  // Returns the best evaluation that has a checkpoint; nullopt: none, or the job keeps no best one.
  std::optional<PastEvaluation> best() const;

 private:
  void write() DTF_REQUIRES(mutex_);

  const std::filesystem::path checkpoints_;
  const std::string keep_best_;
  const std::optional<cluster::EarlyStoppingSpec> early_stopping_;
  mutable Mutex mutex_;
  std::vector<PastEvaluation> history_ DTF_GUARDED_BY(mutex_);
  // Saved, and not evaluated yet: its evaluation's step and its own.
  std::optional<std::pair<uint64_t, uint64_t>> awaited_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::train
