#pragma once

// The evaluations of a job, which the chief keeps in <run_dir>/checkpoints/evaluations.json: the
// best checkpoint by a metric, and whether the evaluations still improve. A job that goes on finds
// the same answers as one that was not interrupted.

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
  // The step of the checkpoint of these parameters. In async mode the checkpoint has a few more
  // updates, of other workers. None: there is no such checkpoint.
  std::optional<uint64_t> checkpoint;
  std::vector<std::pair<std::string, double>> values;  // "loss", "accuracy", ...: finite ones

  std::optional<double> value(std::string_view metric) const;
};

PastEvaluation pastEvaluation(uint64_t step, const Evaluation& evaluation);

// Returns true for accuracy and the like, false for the loss and errors.
bool isHigherBetter(std::string_view metric);

// Returns the first of the best ones that have a checkpoint; null: none has one, or the metric.
const PastEvaluation* bestCheckpoint(std::span<const PastEvaluation> history,
                                     std::string_view metric);

// When training is to end, as Keras' EarlyStopping decides it.
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

// The file of a run, in its folder of checkpoints. A file that is missing is empty.
// Errors: kBadData for one that is damaged, with what to do; kPermission; kCannotWrite.
std::vector<PastEvaluation> readEvaluations(const std::filesystem::path& checkpoints);
// Removes each checkpoint from the history that is no longer in the folder.
// Blocks: on the disk.
void forgetLostCheckpoints(const std::filesystem::path& checkpoints,
                           std::span<PastEvaluation> history);
void writeEvaluations(const std::filesystem::path& checkpoints,
                      std::span<const PastEvaluation> history);

}  // namespace dtf::train
