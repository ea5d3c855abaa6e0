// The part of TrainingLoop between the computation of a gradient and its push.

#include <fmt/core.h>

#include <cmath>

#include "common/base/failpoint.h"
#include "common/optimizer/gradient_clip.h"
#include "common/optimizer/gradient_math.h"
#include "common/train/epochs.h"
#include "common/train/training_loop.h"

namespace dtf::train {

// Checks, clips and weighs the gradient of the computed batch. Statistics are not weighed, however
// few their examples.
void TrainingLoop::finishGradients(const replication::StepState& due) {
  const auto weight = static_cast<float>(plan_.weight(batch_number_));
  if (kept_ != nullptr) return inspectKept(due, weight);
  checkStatistics(due);
  clipGradients(due);
  const auto row_weight = static_cast<float>(rowWeight(plan_, batch_number_));
  if (weight == 1 && row_weight == 1) return;
  DTF_FAILPOINT("training.in_short_batch");
  const std::vector<arena::VariableInfo>& variables = declaration_.layout.variables;
  for (uint32_t i = 0; i < binding_->variables(); ++i) {
    if (variables[i].momentum) continue;
    const std::span<float> gradient = binding_->gradientValues(i);
    optimizer::scale(gradient.data(), variables[i].is_sparse ? row_weight : weight,
                     gradient.size());
  }
}

// The device checks, clips and weighs the gradient that it keeps.
void TrainingLoop::inspectKept(const replication::StepState& due, float weight) {
  const DeviceArena::Findings findings = kept_->prepareUpdate(weight);
  if (!findings.statistics_are_finite) checkStatistics(due);
  checkNorm(findings.norm, due);
}

// A single statistic that is not finite would spoil its moving average for good, and with it every
// checkpoint. The loss, which is normalised by it, may still be finite.
void TrainingLoop::checkStatistics(const replication::StepState& due) {
  const std::vector<arena::VariableInfo>& variables = declaration_.layout.variables;
  for (uint32_t i = 0; i < binding_->variables(); ++i) {
    if (!variables[i].momentum) continue;
    const std::span<const float> statistic(binding_->gradient(i),
                                           static_cast<size_t>(variables[i].shape.elements()));
    const std::optional<uint64_t> at = optimizer::firstNonFinite(statistic);
    if (!at) continue;
    throw trainingFailed(fmt::format("of a batch of {} at step {} '{}' is {} at element {}",
                                     TaskId{JobKind::kWorker, place_.rank}.name(), due.next_step,
                                     variables[i].name, statistic[*at], *at));
  }
}

void TrainingLoop::clipGradients(const replication::StepState& due) {
  if (train_.optimizer.clip_by_global_norm == 0) return;
  const std::vector<arena::VariableInfo>& variables = declaration_.layout.variables;
  gradients_.clear();
  for (uint32_t i = 0; i < binding_->variables(); ++i) {
    if (variables[i].momentum) continue;  // a statistic is no gradient
    gradients_.push_back(binding_->gradientValues(i));
  }
  checkNorm(optimizer::clipByGlobalNorm(gradients_, train_.optimizer.clip_by_global_norm), due);
}

void TrainingLoop::checkNorm(double norm, const replication::StepState& due) const {
  if (std::isfinite(norm)) return;
  throw trainingFailed(fmt::format("the norm of the gradient is {} on {} at step {}", norm,
                                   TaskId{JobKind::kWorker, place_.rank}.name(), due.next_step));
}

}  // namespace dtf::train
