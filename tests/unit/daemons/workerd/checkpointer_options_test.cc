#include "daemons/workerd/checkpointer_options.h"

#include <gtest/gtest.h>

namespace dtf::workerd {
namespace {

cluster::TaskOptions chiefOf(const std::vector<std::string>& ps_hosts) {
  cluster::TaskOptions task;
  task.task = kChief;
  task.job.job = "job";
  task.job.run_dir = "/run";
  for (const std::string& host : ps_hosts) task.job.cluster.ps.emplace_back().address = {host, 1};
  task.job.cluster.worker.emplace_back().address = {"node0", 2};
  task.job.train.emplace().checkpoint.emplace();
  return task;
}

TEST(CheckpointerOptions, SaysWhereThePsAre) {
  const train::CheckpointerOptions options = checkpointerOptions(chiefOf({"node0", "node1"}));
  EXPECT_TRUE(options.elsewhere);
  EXPECT_EQ(options.ps_hosts, (std::vector<std::string>{"node0", "node1"}));
  EXPECT_FALSE(options.gather || options.stay);
  EXPECT_FALSE(checkpointerOptions(chiefOf({"node0"})).elsewhere);
}

TEST(CheckpointerOptions, FilesAreWhereTheFileSays) {
  cluster::TaskOptions task = chiefOf({"node0"});
  task.job.train->checkpoint->stay = true;
  EXPECT_TRUE(checkpointerOptions(task).stay);
  task.job.train->checkpoint = cluster::CheckpointSpec{.gather = true};
  EXPECT_TRUE(checkpointerOptions(task).gather);
}

TEST(CheckpointerOptions, OneProcessHasNobodyToAsk) {
  cluster::TaskOptions task = chiefOf({});
  task.job.train->checkpoint = cluster::CheckpointSpec{.gather = true, .stay = true};
  const train::CheckpointerOptions options = checkpointerOptions(task);
  EXPECT_FALSE(options.gather || options.stay || options.elsewhere);
}

// A save is captured, then written, each for finish_seconds at most.
TEST(CheckpointerOptions, NobodyWaitsLongerForASaveThanTheFileSays) {
  cluster::TaskOptions task = chiefOf({"node0"});
  task.job.timeouts.finish_seconds = 300;
  task.job.timeouts.rejoin_seconds = 40;
  const train::SaveSchedule schedule = saveScheduleOf(task.job);
  EXPECT_EQ(schedule.waits.save, std::chrono::seconds(600));
  EXPECT_EQ(schedule.waits.recovery, std::chrono::seconds(40));
  EXPECT_TRUE(schedule.checkpoint.has_value());
}

}  // namespace
}  // namespace dtf::workerd
