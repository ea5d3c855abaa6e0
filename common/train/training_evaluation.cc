// The half of training_loop.h that evaluates.

#include <fmt/core.h>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/trace.h"
#include "common/train/training_loop.h"

namespace dtf::train {

// At the end the caller evaluates, when all gradients are in.
bool TrainingLoop::evaluationDue(const ps::StepState& state) const {
  const uint64_t every = train_.eval_every_steps;
  const bool passed = every > 0 && state.global_step / every != evaluated_step_ / every;
  return passed && evaluations_.evaluator != nullptr && !state.done;
}

namespace {

// Others wait for this worker meanwhile.
class Evaluating {
 public:
  explicit Evaluating(ps::ParameterClient& client) : client_(client) {
    client_.setEvaluating(true);
  }
  ~Evaluating() { client_.setEvaluating(false); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  ps::ParameterClient& client_;
};

}  // namespace

Evaluation TrainingLoop::evaluateNow(uint64_t global_step) {
  const trace::Span span("evaluate");
  const Evaluating evaluating(client_);
  const TimePoint begin = clock_.now();
  evaluated_step_ = global_step;
  if (evaluations_.before) evaluations_.before(global_step);
  const Evaluation evaluation = evaluateValues();
  DTF_FAILPOINT("training.in_evaluation");
  const Duration spent = clock_.now() - begin;
  evaluating_ += spent;
  report_clock_.skip(spent);
  answered_ += spent;
  if (observer_ != nullptr) observer_->onEvaluation(global_step, evaluation);
  return evaluation;
}

// Of the moving averages where the optimizer keeps them: that is what they are for.
Evaluation TrainingLoop::evaluateValues() {
  if (train_.optimizer.moving_average_decay == 0) {
    binding_->bringWhole();
  } else {
    client_.pullAverages();
    binding_->gatherAverages();
  }
  const Evaluation evaluation = evaluations_.evaluator->run(binding_->values());
  binding_->gatherAgain();
  return evaluation;
}

Evaluation TrainingLoop::evaluate() {
  DTF_CHECK(binding_ != nullptr && evaluations_.evaluator != nullptr);
  if (client_.bringsRows()) binding_->wantNoRows();
  const ps::StepState state = client_.pull();
  binding_->gatherValues();
  const Evaluation evaluation = evaluateValues();
  if (observer_ != nullptr) observer_->onEvaluation(state.global_step, evaluation);
  // The last update may be what spoilt the parameters: no batch has seen them.
  if (divergence_.diverged(evaluation.loss))
    throw trainingFailed(fmt::format("the evaluation after step {} has loss {:.4g}",
                                     state.global_step, evaluation.loss));
  return evaluation;
}

}  // namespace dtf::train
