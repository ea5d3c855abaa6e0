#include "daemons/workerd/job_evaluations.h"

#include <utility>

#include "common/base/log.h"

namespace dtf::workerd {

namespace {

// The last step whose evaluation is still true.
uint64_t lastStepOf(const train::GoesOn& from, bool begins) {
  if (begins) return 0;
  if (from.went_back) return from.went_back->step;
  // An earlier process of the chief has brought the values: nothing was lost.
  return from.resumed ? from.resumed->step : UINT64_MAX;
}

}  // namespace

JobEvaluations::JobEvaluations(const cluster::JobSpec& job, std::function<void()> end)
    : wanted_(job.train->early_stopping ||
              (job.train->checkpoint && !job.train->checkpoint->keep_best.empty())),
      end_(std::move(end)),
      keeper_(job.run_dir / "checkpoints", *job.train) {}

void JobEvaluations::goOnFrom(const train::GoesOn& from, bool begins) {
  if (wanted_) keeper_.goOnFrom(lastStepOf(from, begins));
}

void JobEvaluations::watch(train::Supervisor& supervisor) {
  supervisor_ = &supervisor;
  endIfDue();
}

void JobEvaluations::beforeEvaluation(uint64_t step) {
  if (keeper_.wantsCheckpoints() && supervisor_ != nullptr) supervisor_->saveEvaluated(step);
}

void JobEvaluations::add(uint64_t step, const train::Evaluation& evaluation) {
  if (!wanted_) return;
  keeper_.add(step, evaluation);
  endIfDue();
}

// The history of a job that has ended early stays as it was when that was decided.
void JobEvaluations::addLast(uint64_t step, const train::Evaluation& evaluation,
                             std::optional<uint64_t> saved) {
  if (!wanted_ || !saved || !ended_early_.empty()) return;
  keeper_.add(step, evaluation);
  keeper_.saved(step, *saved);
}

void JobEvaluations::endIfDue() {
  if (!ended_early_.empty()) return;
  ended_early_ = keeper_.whyEnd();
  if (ended_early_.empty()) return;
  log::info("event=ends_early reason=\"{}\"", ended_early_);
  end_();
}

}  // namespace dtf::workerd
