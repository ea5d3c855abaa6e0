#include "launcher/monitor_limits.h"

#include <gtest/gtest.h>

namespace dtf::launcher {

using std::chrono::seconds;

TEST(Limits, WithoutCheckpointsTheJobIsNotAskedToSave) {
  EXPECT_EQ(limitsOf({}).save, Duration{0});
  cluster::JobSpec job;
  job.train.emplace();
  EXPECT_EQ(limitsOf(job).save, Duration{0});
}

TEST(Limits, LongerThanTheTasksOwnPatience) {
  cluster::JobSpec job;
  job.train.emplace().checkpoint.emplace();
  job.timeouts.stop_seconds = 90;
  EXPECT_GT(limitsOf(job).save, seconds(90));
  EXPECT_GT(limitsOf(job).finish, seconds(600));
}

TEST(Limits, BackupWorkersCanBeSpared) {
  cluster::JobSpec job;
  job.cluster.worker.resize(4);
  EXPECT_EQ(limitsOf(job).spares, 0u);
  job.train.emplace().replication = {cluster::ReplicationSpec::Mode::kSync, 3, 4};
  EXPECT_EQ(limitsOf(job).spares, 1u);
  job.train->replication.replicas_to_aggregate = 0;  // all
  EXPECT_EQ(limitsOf(job).spares, 0u);
  job.train->replication.replicas_to_aggregate = 8;  // two batches of each
  EXPECT_EQ(limitsOf(job).spares, 0u);
  job.train->replication = {cluster::ReplicationSpec::Mode::kAsync, 0, 0};
  EXPECT_EQ(limitsOf(job).spares, 0u);
}

// Otherwise `dtf-launch stop` would advise to kill a launcher whose chief is still saving in time.
TEST(Limits, StopWaitsLongerThanTheLauncherMayTake) {
  cluster::JobSpec job;
  job.train.emplace().checkpoint.emplace();
  job.timeouts.stop_seconds = 90;
  const MonitorLimits limits = limitsOf(job);
  EXPECT_GT(stopLimit(job), limits.save + limits.grace + limits.grace);
  EXPECT_GT(stopLimit(job), seconds(94));
}

}  // namespace dtf::launcher
