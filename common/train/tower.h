#pragma once

// A tower, as in TensorFlow: the model on one of a worker's devices. The towers of a worker share
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

// Returns `train` with the share of the batch that one of `towers` trains on.
// Errors: kBadConfig if the batch does not divide evenly.
cluster::TrainSpec shareOf(cluster::TrainSpec train, size_t towers);

// Returns the number from which a tower draws its dropout masks, beside the seed. It differs for
// each tower of each batch. The first tower has the batch's own number, as without towers.
uint64_t maskNumber(uint64_t batch, uint32_t tower);

// Owns: the compiled step; except for the first tower, memory for its gradients, unless a device
// keeps them. The first tower writes to the place of the mean.
// Borrows: the device with its kernels, and all that is bound to step().
// Threads: thread-compatible; run() may be called by another thread than the rest.
// Blocks: run() computes.
// Errors: the constructor's, as ModelStep; throwIfFailed() throws the error of run().
class Tower {
 public:
  // `model` and `part` are for this tower's share of the batch. `kept`: see ModelStep.
  Tower(const model::ModelGraph& model, const engine::TaskPart& part, const ComputeDevice& on,
        uint32_t index, const runtime::KeptVariables* kept = nullptr);

  ModelStep& step() { return step_; }
  const ModelStep& step() const { return step_; }

  // Returns the gradient of a variable that isn't sparse; not of the first tower.
  const float* gradient(uint32_t variable) const { return gradients_[variable].as<float>(); }

  // Runs the step; `listener` may be null. Keeps an error, also the listener's, for
  // throwIfFailed().
  void run(GradientListener* listener = nullptr) noexcept;
  // Throws the error of the last run(). With `several` towers the error names this one and its
  // device.
  void throwIfFailed(bool several) const;

 private:
  const ComputeDevice on_;
  const uint32_t index_;
  ModelStep step_;
  // By variable. Empty: the first tower, a sparse variable, or one that the device keeps.
  std::vector<Buffer> gradients_;
  std::exception_ptr failure_;
};

}  // namespace dtf::train
