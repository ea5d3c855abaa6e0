#pragma once

// The model's metrics on a training batch, for summaries. The training step has no outputs, as its
// kernels fuse the last layer with the loss. So a separate forward step computes them on demand.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/data/part.h"
#include "common/model/model_spec.h"
#include "common/runtime/device.h"
#include "common/train/batch_judge.h"
#include "common/train/evaluation.h"
#include "common/train/model_step.h"

namespace dtf::train {

// Computes the metrics of training batches of one size.
// Owns: a compiled step, and a smaller one if shares differ.
// Borrows: the device.
// Threads: thread-compatible.
// Blocks: measure() computes.
// Errors: as ModelStep.
class TrainingMetrics {
 public:
  // `towers`: the number of towers that train the batch, each on an even share. Here the shares are
  // computed one after another.
  TrainingMetrics(const model::ModelSpec& model, int64_t batch_size, uint32_t towers,
                  const runtime::KernelTable& kernels, runtime::Device& device);

  // Computes the metrics as training sees the batch: each tower's share with the dropout masks of
  // (`seed`, `number`), normalised by its own statistics. `values`: the variables in the model's
  // order.
  Evaluation measure(const data::Batch& batch, std::span<const float* const> values, uint64_t seed,
                     uint64_t number);

 private:
  const uint64_t batch_size_;
  const uint64_t towers_;             // with examples
  ModelStep step_;                    // for the first share
  std::optional<ModelStep> smaller_;  // for shares with one example less
  BatchJudge judge_;
};

}  // namespace dtf::train
