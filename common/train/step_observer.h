#pragma once

// The interface by which a training loop shows its state to an observer.

#include <cstdint>
#include <functional>

#include "common/data/part.h"
#include "common/replication/step_state.h"
#include "common/train/evaluation.h"
#include "common/train/parameter_binding.h"

namespace dtf::train {

// The batch that a step has computed.
struct ComputedBatch {
  const data::Batch& examples;
  // Computes the model's metrics on the batch, by another forward pass. Uses the parameters of the
  // step, or the newest ones if exchanges overlap.
  std::function<Evaluation()> measure;
};

// Called on the training thread, which waits, so calls should be quick. Arguments are valid during
// the call.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  // `binding` has new parameters: at the start of training (`first`), then with each answer.
  virtual void onParameters(const replication::StepState& state, ParameterBinding& binding,
                            bool first) = 0;

  // `binding` has the gradient of the next batch, about to be pushed.
  virtual void onGradients(ParameterBinding& binding, const ComputedBatch& batch) = 0;

  // The parameters at `global_step` were evaluated.
  virtual void onEvaluation(uint64_t global_step, const Evaluation& evaluation) = 0;
};

}  // namespace dtf::train
