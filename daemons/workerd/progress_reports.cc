#include "daemons/workerd/progress_reports.h"

#include <fmt/format.h>

#include "common/base/log.h"
#include "common/base/notify.h"

namespace dtf::workerd {

namespace {

// A launcher shows the progress itself.
constexpr Duration kLoggedEvery = std::chrono::seconds(10);

}  // namespace

ProgressReports::ProgressReports(bool is_chief, const Clock& clock, WorkerStatus& status,
                                 JobReport& report, JobEvaluations& evaluations)
    : is_chief_(is_chief),
      clock_(clock),
      status_(status),
      report_(report),
      evaluations_(evaluations) {}

void ProgressReports::add(const train::Progress& progress,
                          const std::optional<train::CheckpointStatus>& checkpoints) {
  status_.goesOn();
  status_.global_step = progress.global_step;
  status_.steps = progress.steps;
  status_.loss = static_cast<float>(progress.loss);
  status_.steps_per_second = progress.steps_per_second;
  status_.examples_per_second = progress.examples_per_second;
  status_.evaluates = false;
  done_.progress = progress;
  add(checkpoints);
  if (!is_chief_) return;
  report_.progress(progress);
  if (progress.evaluation) evaluations_.add(progress.global_step, *progress.evaluation);
  log(progress);
}

void ProgressReports::add(const std::optional<train::CheckpointStatus>& checkpoints) {
  if (checkpoints) done_.checkpoints = checkpoints;
  status_.reports(done_);
}

void ProgressReports::log(const train::Progress& progress) {
  if (progress.evaluation && progress.evaluation->accuracy)
    accuracy_ = fmt::format(" eval_accuracy={:.4f}", *progress.evaluation->accuracy);
  if (notifyEnabled() && clock_.now() - logged_ < kLoggedEvery) return;
  logged_ = clock_.now();
  log::info("event=progress step={} steps={} loss={:.4f} examples_per_second={:.0f}{}",
            progress.global_step, progress.steps, progress.loss, progress.examples_per_second,
            accuracy_);
}

}  // namespace dtf::workerd
