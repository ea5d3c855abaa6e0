#include "daemons/workerd/job_evaluations.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/train/patience_check.h"

namespace dtf::workerd {

namespace {

// Returns the step up to which earlier evaluations are valid.
uint64_t lastStepOf(const train::GoesOn& from, bool begins) {
  if (begins) return 0;
  if (from.went_back) return from.went_back->step;
  // The values are from an earlier process of the chief: no step was lost.
  return from.resumed ? from.resumed->step : UINT64_MAX;
}

// dtf-launch has warned before the start of what it `knew`: for its console this is a detail.
void warn(const std::string& line, bool knew) {
  notifyEnabled() && knew ? log::info("{}", line) : log::warning("{}", line);
}

}  // namespace

void warnOfEvaluations(const cluster::TrainSpec& train, int64_t examples, uint32_t workers) {
  if (train.model.wantsEvaluation() && !train.data.eval && !train.summaries)
    warn(
        "event=nothing_to_evaluate reason=\"model.metrics asks for evaluations, but data.eval "
        "names no data to evaluate: add it, or leave out the metrics\"",
        true);
  DTF_CHECK(examples > 0 && workers > 0);
  const std::string fault = train::patienceFault(train, examples, workers);
  if (!fault.empty()) warn("event=never_ends_early reason=\"" + fault + "\"", train.epochs == 0);
}

JobEvaluations::JobEvaluations(const cluster::JobSpec& job, std::function<void()> end)
    : wanted_(job.train->early_stopping ||
              (job.train->checkpoint && !job.train->checkpoint->keep_best.empty())),
      keep_best_(job.train->checkpoint ? job.train->checkpoint->keep_best : ""),
      end_(std::move(end)),
      keeper_(job.run_dir / "checkpoints", *job.train) {}

void JobEvaluations::goOnFrom(const train::GoesOn& from, bool begins) {
  if (!wanted_) return;
  keeper_.goOnFrom(lastStepOf(from, begins));
  if (!begins && from.resumed) resumed_ = from.resumed->step;
}

bool JobEvaluations::watch(train::Supervisor& supervisor) {
  DTF_CHECK(supervisor_ == nullptr);
  supervisor_ = &supervisor;
  endIfDue();
  if (ended_early_.empty()) return false;
  log::warning(
      "event=ends_at_once reason=\"the job ended early{}, as {}: raise "
      "train.early_stopping.patience to go on, or begin anew with dtf-launch --fresh\"",
      resumed_ ? fmt::format(" at step {}", *resumed_) : "", ended_early_);
  return true;
}

void JobEvaluations::beforeEvaluation(uint64_t step) {
  if (keeper_.wantsCheckpoints() && supervisor_ != nullptr) supervisor_->saveEvaluated(step);
}

void JobEvaluations::goBack(uint64_t step) {
  if (wanted_) keeper_.goBack(step);
}

void JobEvaluations::add(uint64_t step, const train::Evaluation& evaluation) {
  if (!wanted_) return;
  keeper_.add(step, evaluation, [this, step] {
    return supervisor_ == nullptr || !supervisor_->hasGoneBackBefore(step);
  });
  endIfDue();
}

// After an early end the history stays as it was at that decision.
void JobEvaluations::addLast(uint64_t step, const train::Evaluation& evaluation,
                             std::optional<uint64_t> saved) {
  if (!wanted_ || !saved || !ended_early_.empty()) return;
  keeper_.add(step, evaluation);
  keeper_.saved(step, *saved);
}

void JobEvaluations::tellOf(JobResult& job) const {
  if (job.training.stopped) job.ended_early = ended_early_;
  job.best = keeper_.best();
  job.best_metric = keep_best_;
}

void JobEvaluations::endIfDue() {
  if (!ended_early_.empty()) return;
  ended_early_ = keeper_.whyEnd();
  if (ended_early_.empty()) return;
  log::info("event=ends_early reason=\"{}\"", ended_early_);
  end_();
}

}  // namespace dtf::workerd
