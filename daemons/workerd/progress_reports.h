#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/train/supervisor.h"
#include "common/train/training_loop.h"
#include "daemons/workerd/job_evaluations.h"
#include "daemons/workerd/job_report.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

// Reports how far a worker is: to its status; of the chief also to the launcher and the log.
// Borrows: the constructor's arguments (must outlive this).
// Threads: the training thread.
class ProgressReports {
 public:
  // `report`, `evaluations`: of the chief; else they get nothing.
  ProgressReports(bool is_chief, const Clock& clock, WorkerStatus& status, JobReport& report,
                  JobEvaluations& evaluations);

  // `checkpoints`: nullopt: the job keeps none.
  void add(const train::Progress& progress,
           const std::optional<train::CheckpointStatus>& checkpoints);
  // The checkpoints have changed since the last progress.
  void add(const std::optional<train::CheckpointStatus>& checkpoints);

 private:
  void log(const train::Progress& progress);

  const bool is_chief_;
  const Clock& clock_;
  WorkerStatus& status_;
  JobReport& report_;
  JobEvaluations& evaluations_;
  WorkerStatus::Done done_;
  std::string accuracy_;  // of the last evaluation
  TimePoint logged_{};
};

}  // namespace dtf::workerd
