#pragma once

// One of a worker's devices with the model on it: TensorFlow's tower. The towers of a worker share
// its variables and split its batch (tower_group.h).

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "common/cluster/spec.h"
#include "common/tensor/buffer.h"
#include "common/train/model_part.h"
#include "common/train/model_step.h"

namespace dtf::train {

// What one of `towers` trains: on its share of the batch.
// Errors: kBadConfig for a batch that can't be shared out evenly.
cluster::TrainSpec shareOf(cluster::TrainSpec train, size_t towers);

// What a tower draws its masks from, beside the seed: another number for each tower of each batch.
// The first tower's is the batch's own, as without towers.
uint64_t maskNumber(uint64_t batch, uint32_t tower);

// Owns: the compiled step; for all towers but the first also memory for its gradients, where no
// device keeps them: the first one writes where the mean will be.
// Borrows: the device with its kernels, and what is bound to step().
// Threads: thread-compatible; run() may be called by another thread than the rest.
// Blocks: run() computes.
// Errors: the constructor's are those of ModelStep; throwIfFailed() throws those of run().
class Tower {
 public:
  // `model` and `part` are of this tower's share of the batch. `kept`: see ModelStep.
  Tower(const model::ModelGraph& model, const engine::TaskPart& part, const ComputeDevice& on,
        uint32_t index, const runtime::KeptVariables* kept = nullptr);

  ModelStep& step() { return step_; }
  const ModelStep& step() const { return step_; }

  // Of a tower behind the first, and a variable that isn't sparse.
  const float* gradient(uint32_t variable) const { return gradients_[variable].as<float>(); }

  // Computes what is bound; `listener` may be null. What goes wrong, also in it, is kept for
  // throwIfFailed().
  void run(GradientListener* listener = nullptr) noexcept;
  // Of the last run(). Errors: those of the kernels; where there are `several` towers they name
  // this one and its device.
  void throwIfFailed(bool several) const;

 private:
  const ComputeDevice on_;
  const uint32_t index_;
  ModelStep step_;
  std::vector<Buffer>
      gradients_;  // by variable; empty: the first tower, a sparse variable, one that is kept
  std::exception_ptr failure_;
};

}  // namespace dtf::train
