#include "daemons/workerd/worker_metrics.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/http_client.h"

namespace dtf::workerd {
namespace {

TEST(WorkerMetrics, AWorkerIsReadyWhileItTrainsAndWaitsForNobody) {
  WorkerStatus status;
  EXPECT_EQ(lookOf(status).not_ready, "it starts");
  EXPECT_TRUE(lookOf(status).takes_its_time);
  status.awaits("ps/0 to listen");
  EXPECT_EQ(lookOf(status).not_ready, "it waits for ps/0 to listen");
  status.goesOn();
  std::optional<WorkerStatus::Training> training;
  training.emplace(status, nullptr);
  EXPECT_EQ(lookOf(status).not_ready, "");
  EXPECT_FALSE(lookOf(status).takes_its_time);
  status.awaits("ps/0 to come back");
  EXPECT_EQ(lookOf(status).not_ready, "it waits for ps/0 to come back");
  status.goesOn();
  training.reset();
  EXPECT_EQ(lookOf(status).not_ready, "") << "it saves, or evaluates";
}

TEST(WorkerMetrics, SayWhatWasReportedLast) {
  WorkerStatus status;
  status.global_step = 41;
  status.steps = 100;
  status.loss = 0.5f;
  status.steps_per_second = 4;
  status.examples_per_second = 400;
  const testing::MetricsPage page =
      testing::parseMetrics(metricsText(lookOf(status).metrics, {{"task", "worker/0"}}));
  EXPECT_EQ(page.value("dtf_global_step"), 41);
  EXPECT_EQ(page.value("dtf_job_steps"), 100);
  EXPECT_EQ(page.value("dtf_loss"), 0.5);
  EXPECT_EQ(page.value("dtf_global_steps_per_second"), 4);
  EXPECT_EQ(page.value("dtf_job_examples_per_second"), 400);
  EXPECT_FALSE(page.families.contains("dtf_checkpoints_total")) << "none are kept";
}

TEST(WorkerMetrics, SayWhatTheWorkerHasDone) {
  WorkerStatus status;
  WorkerStatus::Done done;
  done.progress.batches = 10;
  done.progress.batches_stale = 3;
  done.progress.examples = 1000;
  done.progress.phases_total[replication::Phase::kWait] = std::chrono::milliseconds(2500);
  for (const int milliseconds : {1, 2, 2, 40'000})
    done.progress.step_times.add(std::chrono::milliseconds(milliseconds));
  done.checkpoints = train::CheckpointStatus{.last_step = 500, .saved = 2, .failed = 1};
  status.reports(done);
  const testing::MetricsPage page =
      testing::parseMetrics(metricsText(lookOf(status).metrics, {{"task", "worker/0"}}));
  EXPECT_EQ(page.value("dtf_batches_total", "outcome=\"applied\""), 7);
  EXPECT_EQ(page.value("dtf_batches_total", "outcome=\"stale\""), 3);
  EXPECT_EQ(page.value("dtf_examples_total"), 1000);
  const auto up_to = [&page](const std::string& bound) {
    return page.value("dtf_step_seconds_bucket", "le=\"" + bound + "\"");
  };
  EXPECT_EQ(up_to("0.0005"), 0);
  EXPECT_EQ(up_to("0.001"), 1) << "at most: the bound is in it";
  EXPECT_EQ(up_to("0.0025"), 3);
  EXPECT_EQ(up_to("25"), 3);
  EXPECT_EQ(up_to("+Inf"), 4);
  EXPECT_DOUBLE_EQ(page.value("dtf_step_seconds_sum"), 40.005);
  EXPECT_EQ(page.value("dtf_phase_seconds_total", "phase=\"wait\""), 2.5);
  EXPECT_EQ(page.value("dtf_phase_seconds_total", "phase=\"data\""), 0);
  EXPECT_EQ(page.value("dtf_checkpoint_step"), 500);
  EXPECT_EQ(page.value("dtf_checkpoints_total", "outcome=\"saved\""), 2);
  EXPECT_EQ(page.value("dtf_checkpoints_total", "outcome=\"failed\""), 1);
}

}  // namespace
}  // namespace dtf::workerd
