#include "daemons/workerd/progress_reports.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_files.h"

namespace dtf::workerd {
namespace {

train::Progress progressOf(uint64_t step) {
  train::Progress progress;
  progress.global_step = step;
  progress.steps = 100;
  progress.loss = 0.5;
  progress.steps_per_second = 20;
  return progress;
}

train::CheckpointStatus statusOf(uint64_t last_step) {
  train::CheckpointStatus status;
  status.last_step = last_step;
  return status;
}

class ProgressReportsTest : public ::testing::Test {
 protected:
  static cluster::TaskOptions taskOf() {
    cluster::TaskOptions task;
    task.task = kChief;
    task.job.run_dir = "run";
    task.job.train.emplace().checkpoint.emplace();
    return task;
  }

  const testing::TemporaryFiles files_;
  const cluster::TaskOptions task_ = taskOf();
  const ManualClock clock_{};
  WorkerStatus status_;
  JobReport report_{task_};
  JobEvaluations evaluations_{task_.job, [] { ADD_FAILURE() << "the job ends"; }};
};

TEST_F(ProgressReportsTest, TheStatusHasTheProgressAndTheCheckpoints) {
  ProgressReports reports(false, clock_, status_, report_, evaluations_);
  status_.evaluates = true;
  reports.add(progressOf(10), statusOf(8));
  EXPECT_EQ(status_.global_step, 10U);
  EXPECT_EQ(status_.steps, 100U);
  EXPECT_EQ(status_.steps_per_second, 20);
  EXPECT_FALSE(status_.evaluates);
  EXPECT_EQ(status_.done().progress.global_step, 10U);
  EXPECT_EQ(status_.done().checkpoints->last_step, 8U);
}

TEST_F(ProgressReportsTest, ACheckpointLeavesTheProgressAsItWas) {
  ProgressReports reports(false, clock_, status_, report_, evaluations_);
  reports.add(progressOf(10), std::nullopt);
  EXPECT_FALSE(status_.done().checkpoints);
  reports.add(statusOf(10));
  EXPECT_EQ(status_.done().progress.global_step, 10U);
  EXPECT_EQ(status_.done().checkpoints->last_step, 10U);
}

TEST_F(ProgressReportsTest, OnlyTheChiefReportsToTheOutside) {
  const auto printedBy = [&](bool is_chief) {
    ProgressReports reports(is_chief, clock_, status_, report_, evaluations_);
    ::testing::internal::CaptureStderr();
    reports.add(progressOf(10), std::nullopt);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(printedBy(false), "");
  EXPECT_NE(printedBy(true).find("event=progress step=10 steps=100 loss=0.5000"),
            std::string::npos);
}

}  // namespace
}  // namespace dtf::workerd
