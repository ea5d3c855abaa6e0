// The evaluations of TrainingLoop.

#include <fmt/core.h>

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/trace.h"
#include "common/train/training_loop.h"

namespace dtf::train {

void TrainingLoop::evaluateOn(std::shared_ptr<const data::Dataset> dataset,
                              std::function<void(uint64_t)> before) {
  DTF_CHECK(place_.rank == kChief.index && dataset != nullptr);
  evaluations_ = {std::make_unique<Evaluator>(train_.model, std::move(dataset), kernels_, device_,
                                              countsClasses(train_)),
                  std::move(before)};
}

// At the end of the job the caller evaluates, when all gradients are applied.
bool TrainingLoop::evaluationDue(const replication::StepState& state) const {
  const uint64_t every = train_.eval_every_steps;
  const bool passed = every > 0 && state.global_step / every != evaluated_step_ / every;
  return passed && evaluations_.evaluator != nullptr && !state.done;
}

namespace {

// Marks this worker as evaluating, as other workers may wait for it.
class Evaluating {
 public:
  explicit Evaluating(exchange::JobClient& job) : job_(job) { job_.setEvaluating(true); }
  ~Evaluating() { job_.setEvaluating(false); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  exchange::JobClient& job_;
};

}  // namespace

Evaluation TrainingLoop::evaluateNow(uint64_t global_step) {
  const trace::Span span("evaluate");
  const Evaluating evaluating(client_.job());
  const StepClock::Section section(step_clock_, replication::Phase::kEvaluate);
  const TimePoint begin = clock_.now();
  evaluated_step_ = global_step;
  if (evaluations_.before) evaluations_.before(global_step);
  const Evaluation evaluation = evaluateValues();
  DTF_FAILPOINT("training.in_evaluation");
  const Duration spent = clock_.now() - begin;
  evaluating_ += spent;
  report_clock_.skip(spent);
  if (observer_ != nullptr) observer_->onEvaluation(global_step, evaluation);
  return evaluation;
}

// Evaluates the moving averages if the optimizer keeps them, else the parameters.
Evaluation TrainingLoop::evaluateValues() {
  if (train_.optimizer.moving_average_decay == 0) {
    binding_->bringWhole();
  } else {
    client_.pull(exchange::Values::kAverages);
    binding_->gatherAverages();
  }
  const Evaluation evaluation = evaluations_.evaluator->run(binding_->values());
  binding_->gatherAgain();
  return evaluation;
}

Evaluation TrainingLoop::evaluate() {
  DTF_CHECK(binding_ != nullptr && evaluations_.evaluator != nullptr);
  if (client_.traits().brings_rows) binding_->wantNoRows();
  const replication::StepState state = client_.pull();
  binding_->gatherValues();
  const Evaluation evaluation = evaluateValues();
  if (observer_ != nullptr) observer_->onEvaluation(state.global_step, evaluation);
  // The last update may have spoilt the parameters, and no batch has read them since.
  if (divergence_.diverged(evaluation.loss))
    throw trainingFailed(fmt::format("the evaluation after step {} has loss {:.4g}",
                                     state.global_step, evaluation.loss));
  return evaluation;
}

}  // namespace dtf::train
