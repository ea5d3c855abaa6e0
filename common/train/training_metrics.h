#pragma once

// The model's metrics on a batch that it is trained on, for whoever shows how training goes. The
// training's own step computes no outputs (its kernels join the last layer with the loss), so they
// are computed once more, by a step that nobody needs as long as nobody asks.

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

// Of batches of one size.
// Owns: a compiled step, and one for smaller shares. Borrows: the device.
// Threads: thread-compatible. Blocks: computes. Errors: those of ModelStep.
class TrainingMetrics {
 public:
  // `towers` compute the batch, each an even share of it; here one share is computed after
  // another.
  TrainingMetrics(const model::ModelSpec& model, int64_t batch_size, uint32_t towers,
                  const runtime::KernelTable& kernels, runtime::Device& device);

  // As training sees the batch: each tower's share with the dropout of (`seed`, `number`), and
  // normalised by its own statistics. `values`: the variables in the order of the model.
  Evaluation measure(const data::Batch& batch, std::span<const float* const> values, uint64_t seed,
                     uint64_t number);

 private:
  const uint64_t batch_size_;
  const uint64_t towers_;             // that have examples
  ModelStep step_;                    // of the first share
  std::optional<ModelStep> smaller_;  // of those that have one example less
  BatchJudge judge_;
};

}  // namespace dtf::train
