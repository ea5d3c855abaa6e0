// The part of training_loop.h between the computation of a gradient and its push.

#include <fmt/core.h>

#include <cmath>

#include "common/base/failpoint.h"
#include "common/ps/gradient_math.h"
#include "common/train/epochs.h"
#include "common/train/gradient_clip.h"
#include "common/train/training_loop.h"

namespace dtf::train {

// Of the batch that was computed. Its statistics are those of its examples, however few they are.
void TrainingLoop::finishGradients(const ps::StepState& due) {
  const auto weight = static_cast<float>(plan_.weight(batch_number_));
  if (kept_ != nullptr) return inspectKept(due, weight);
  checkStatistics(due);
  clipGradients(due);
  const auto row_weight = static_cast<float>(rowWeight(plan_, batch_number_));
  if (weight == 1 && row_weight == 1) return;
  DTF_FAILPOINT("training.in_short_batch");
  const std::vector<ps::VariableInfo>& variables = declaration_.layout.variables;
  for (uint32_t i = 0; i < binding_->variables(); ++i) {
    if (variables[i].momentum) continue;
    const std::span<float> gradient = binding_->gradientValues(i);
    ps::scale(gradient.data(), variables[i].is_sparse ? row_weight : weight, gradient.size());
  }
}

// The device looks, clips and weighs.
void TrainingLoop::inspectKept(const ps::StepState& due, float weight) {
  const DeviceArena::Findings findings = kept_->prepareUpdate(weight);
  if (!findings.statistics_are_finite) checkStatistics(due);
  checkNorm(findings.norm, due);
}

// A single one that is no number would spoil its moving average for good, and with it every
// checkpoint; the loss, which is normalised by it, may well be a number.
void TrainingLoop::checkStatistics(const ps::StepState& due) {
  const std::vector<ps::VariableInfo>& variables = declaration_.layout.variables;
  for (uint32_t i = 0; i < binding_->variables(); ++i) {
    if (!variables[i].momentum) continue;
    const std::span<const float> statistic(binding_->gradient(i),
                                           static_cast<size_t>(variables[i].shape.elements()));
    const std::optional<uint64_t> at = ps::firstNonFinite(statistic);
    if (!at) continue;
    throw trainingFailed(fmt::format("of a batch of {} at step {} '{}' is {} at element {}",
                                     TaskId{JobKind::kWorker, place_.rank}.name(), due.next_step,
                                     variables[i].name, statistic[*at], *at));
  }
}

void TrainingLoop::clipGradients(const ps::StepState& due) {
  if (train_.optimizer.clip_by_global_norm == 0) return;
  const std::vector<ps::VariableInfo>& variables = declaration_.layout.variables;
  gradients_.clear();
  for (uint32_t i = 0; i < binding_->variables(); ++i) {
    if (variables[i].momentum) continue;  // what a moving average is sent is no gradient
    gradients_.push_back(binding_->gradientValues(i));
  }
  checkNorm(clipByGlobalNorm(gradients_, train_.optimizer.clip_by_global_norm), due);
}

void TrainingLoop::checkNorm(double norm, const ps::StepState& due) const {
  if (std::isfinite(norm)) return;
  throw trainingFailed(fmt::format("the norm of the gradient is {} on {} at step {}", norm,
                                   TaskId{JobKind::kWorker, place_.rank}.name(), due.next_step));
}

}  // namespace dtf::train
