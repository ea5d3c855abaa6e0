#pragma once

// The history of a job's evaluations, which the chief keeps in
// <run_dir>/checkpoints/evaluations.json. It yields the best checkpoint by a metric, and whether
// the evaluations still improve. A resumed job gets the same answers as an uninterrupted one.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/cluster/spec.h"
#include "common/train/evaluation.h"

namespace dtf::train {

// Value type.
struct PastEvaluation {
  uint64_t step = 0;  // of the parameters
  // The step of the checkpoint that was taken with it. It is later than `step` by the updates that
  // other workers made until the cut: in async mode, or with backup workers. None: there is no such
  // checkpoint.
  std::optional<uint64_t> checkpoint;
  std::vector<std::pair<std::string, double>> values;  // "loss", "accuracy", ...: finite ones
  uint64_t left_out = 0;  // evaluations before this one that boundHistory() has removed
  // It improved on an evaluation that boundHistory() has removed, so improvementOf() need not ask.
  bool improved = false;

  std::optional<double> value(std::string_view metric) const;
};

PastEvaluation pastEvaluation(uint64_t step, const Evaluation& evaluation);

// Returns true for accuracy and the like, false for the loss and errors.
bool isHigherBetter(std::string_view metric);

// Returns the best evaluation by `metric` that has a checkpoint; null if there is none. A tie goes
// to the lowest loss, then to the first: accuracies of few examples are often equal.
const PastEvaluation* bestCheckpoint(std::span<const PastEvaluation> history,
                                     std::string_view metric);

// The state of early stopping, by the rule of Keras' EarlyStopping.
struct Improvement {
  const PastEvaluation* best = nullptr;  // null: no evaluation has the metric
  uint64_t since = 0;                    // evaluations after the last improvement
};
Improvement improvementOf(std::span<const PastEvaluation> history,
                          const cluster::EarlyStoppingSpec& rule);

// Returns why training ends: "accuracy has not improved on 0.9312 of step 400 in 5 evaluations".
// Empty: it goes on.
std::string earlyStopReason(std::span<const PastEvaluation> history,
                            const cluster::EarlyStoppingSpec& rule);

// The history keeps so many evaluations: the file is rewritten after each, so its size is bounded.
inline constexpr size_t kEvaluationsMax = 1000;

// Removes the oldest evaluations beyond kEvaluationsMax. Keeps the best checkpoint by `metric`
// (empty: none), and the improvement with which `rule` (null: none) compares the oldest kept one.
// So improvementOf() has the result of the whole history, also if the job then goes back.
void boundHistory(std::vector<PastEvaluation>& history, std::string_view metric,
                  const cluster::EarlyStoppingSpec* rule);

// The history file of a run, in its folder of checkpoints. A missing file is an empty history. If
// the last line is cut short, logs a warning and returns the evaluations before it.
// Errors: kBadData, with a remedy, if the file is damaged; kPermission; kCannotWrite.
std::vector<PastEvaluation> readEvaluations(const std::filesystem::path& checkpoints);
// Removes each checkpoint from the history that is no longer in the folder.
// Blocks: on the disk.
void forgetLostCheckpoints(const std::filesystem::path& checkpoints,
                           std::span<PastEvaluation> history);
void writeEvaluations(const std::filesystem::path& checkpoints,
                      std::span<const PastEvaluation> history);

}  // namespace dtf::train
