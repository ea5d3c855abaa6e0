#pragma once

// What a training loop shows to who measures it.

#include <cstdint>
#include <functional>

#include "common/data/part.h"
#include "common/ps/parameter_client.h"
#include "common/train/evaluation.h"
#include "common/train/parameter_binding.h"

namespace dtf::train {

// The batch that a step has computed.
struct ComputedBatch {
  const data::Batch& examples;
  // The model's metrics on it, with the parameters that it was computed from, or where exchanges
  // overlap with the newest ones; costs another forward pass.
  std::function<Evaluation()> measure;
};

// All calls come from the training thread and hold it up: they should be quick. What they are shown
// is theirs until they return.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  // New parameters came, bound in `binding`: those that training starts from (`first`), then those
  // of each answer.
  virtual void onParameters(const ps::StepState& state, ParameterBinding& binding, bool first) = 0;

  // The gradient of the batch that follows lies in `binding`, as it is about to be pushed.
  virtual void onGradients(ParameterBinding& binding, const ComputedBatch& batch) = 0;

  // Of the parameters at `global_step`.
  virtual void onEvaluation(uint64_t global_step, const Evaluation& evaluation) = 0;
};

}  // namespace dtf::train
