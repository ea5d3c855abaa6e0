#include "launcher/launch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/error.h"

namespace dtf::launcher {

namespace {

cluster::TaskSpec task(const std::string& host, uint16_t port) {
  cluster::TaskSpec spec;
  spec.address = {host, port};
  return spec;
}

PlanInput input() {
  PlanInput plan;
  plan.cluster_file = "local.yaml";
  plan.binaries = {"/opt/dtf/psd", "/opt/dtf/workerd"};
  plan.folder = "/home/me";
  return plan;
}

}  // namespace

TEST(LaunchPlan, FixedPortsNeedNothingButTheFile) {
  cluster::JobSpec job;
  job.cluster.ps = {task("localhost", 2221)};
  job.cluster.worker = {task("localhost", 2222), task("localhost", 2223)};
  EXPECT_EQ(planText(makePlan(job, input(), {})),
            "localhost | /opt/dtf/psd --cluster local.yaml --task 0\n"
            "localhost | /opt/dtf/workerd --cluster local.yaml --task 0\n"
            "localhost | /opt/dtf/workerd --cluster local.yaml --task 1\n");
}

TEST(LaunchPlan, EveryTaskLearnsEveryAutomaticPortAfterTheUsersOverrides) {
  cluster::JobSpec job;
  job.cluster.ps = {task("localhost", 0)};
  job.cluster.worker = {task("::1", 0)};
  job.cluster.worker[0].devices = {"cpu:0"};
  job.cluster.worker[0].env = {{"OMP_NUM_THREADS", "2"}};
  PlanInput plan = input();
  plan.overrides = {"train.steps=50", "job=it's mine"};
  plan.run_dir = "/tmp/a b";
  plan.log_level = "debug";
  const ChosenAddresses chosen = {{TaskId{JobKind::kPs, 0}, "127.0.0.1:4001"},
                                  {TaskId{JobKind::kWorker, 0}, "[::1]:4002"}};
  const std::string rest =
      " --cluster local.yaml --task 0 --set train.steps=50 --set 'job=it'\\''s mine'"
      " --set cluster.ps.0=127.0.0.1:4001 --set 'cluster.worker.0.address=\"[::1]:4002\"'"
      " --run-dir '/tmp/a b' --log-level debug\n";
  EXPECT_EQ(
      planText(makePlan(job, plan, chosen)),
      "localhost | /opt/dtf/psd" + rest + "::1 | env OMP_NUM_THREADS=2 /opt/dtf/workerd" + rest);
}

TEST(LaunchPlan, TasksThatTheFileOnlyCountsBecomeAList) {
  cluster::JobSpec job;
  cluster::TaskSpec counted = task("localhost", 0);
  counted.by_count = true;
  job.cluster.ps = {counted, counted};
  counted.threads = 3;
  job.cluster.worker = {counted};
  const ChosenAddresses chosen = {{TaskId{JobKind::kPs, 0}, "one:1"},
                                  {TaskId{JobKind::kPs, 1}, "two:2"},
                                  {TaskId{JobKind::kWorker, 0}, "[::1]:3"}};
  const std::vector<TaskCommand> plan = makePlan(job, input(), chosen);
  const std::vector<std::string> words(plan[0].argv.end() - 4, plan[0].argv.end());
  EXPECT_EQ(words, (std::vector<std::string>{
                       "--set", R"(cluster.ps=[{"address":"one:1"},{"address":"two:2"}])", "--set",
                       R"(cluster.worker=[{"address":"[::1]:3","threads":3}])"}));
}

// As on Slurm: `cluster: {worker: {count: 2}}`.
TEST(LaunchPlan, AJobWithoutPsHasWorkersAloneAndNamesNoPs) {
  cluster::JobSpec job;
  cluster::TaskSpec counted = task("localhost", 0);
  counted.by_count = true;
  job.cluster.worker = {counted, counted};
  const ChosenAddresses chosen = {{TaskId{JobKind::kWorker, 0}, "one:1"},
                                  {TaskId{JobKind::kWorker, 1}, "two:2"}};
  const std::vector<TaskCommand> plan = makePlan(job, input(), chosen);
  ASSERT_EQ(plan.size(), 2u);
  for (const TaskCommand& command : plan) {
    EXPECT_EQ(command.argv.front(), "/opt/dtf/workerd");
    EXPECT_EQ(command.argv.back(), R"(cluster.worker=[{"address":"one:1"},{"address":"two:2"}])");
  }
}

TEST(LaunchPlan, AWorkerWithThreadsKeepsThem) {
  cluster::JobSpec job;
  job.cluster.worker = {task("localhost", 0)};
  job.cluster.worker[0].threads = 2;
  EXPECT_EQ(planText(makePlan(job, input(), {{TaskId{JobKind::kWorker, 0}, "127.0.0.1:4001"}})),
            "localhost | /opt/dtf/workerd --cluster local.yaml --task 0 --set "
            "cluster.worker.0.address=127.0.0.1:4001\n");
}

TEST(LaunchPlan, AWorkerThatLearnsStaysFreshOnAHostThatIsNotTheChiefs) {
  cluster::JobSpec job;
  job.cluster.ps = {task("far", 1)};
  job.cluster.worker = {task("localhost", 2), task("127.0.0.1", 3), task("far", 4)};
  job.train.emplace().data.train.csv.learns_classes = true;
  PlanInput plan = input();
  plan.fresh = true;
  std::vector<bool> fresh, stay;
  for (const TaskCommand& command : makePlan(job, plan, {})) {
    fresh.push_back(std::ranges::count(command.argv, "--fresh") == 1);
    stay.push_back(command.stays_fresh);
  }
  EXPECT_EQ(fresh, (std::vector<bool>{false, true, true, true}));
  EXPECT_EQ(stay, (std::vector<bool>{false, false, false, true}));
}

TEST(LaunchPlan, JsonHasTheSameWordsUnquoted) {
  cluster::JobSpec job;
  job.cluster.worker = {task("localhost", 2222)};
  job.cluster.worker[0].env = {{"A", "b c"}};
  EXPECT_EQ(planJson(makePlan(job, input(), {})),
            R"({"schema":1,"event":"plan","tasks":[{"name":"worker/0","host":"localhost",)"
            R"("folder":"/home/me","env":{"A":"b c"},"argv":["/opt/dtf/workerd","--cluster",)"
            R"("local.yaml","--task","0"]}]})"
            "\n");
}

TEST(LaunchPlan, WhatLeadsToOtherHostsComesFirst) {
  cluster::JobSpec job;
  job.cluster.worker = {task("gpu1", 2222)};
  const auto plan = makePlan(job, input(), {});
  const std::vector<SshHostCommand> hosts = {{"gpu1", {"ssh", "-i", "a b", "--", "gpu1"}}};
  EXPECT_EQ(planText(plan, hosts), "to gpu1 | ssh -i 'a b' -- gpu1\n" + planText(plan));
  EXPECT_TRUE(planJson(plan, hosts)
                  .ends_with(R"("hosts":[{"host":"gpu1","argv":["ssh","-i","a b","--","gpu1"]}]})"
                             "\n"))
      << planJson(plan, hosts);
}

TEST(LaunchPlan, MissingPortIsABug) {
  cluster::JobSpec job;
  job.cluster.ps = {task("localhost", 0)};
  EXPECT_THROW(makePlan(job, input(), {}), Error);
}

TEST(ShellQuote, LeavesPlainWordsAndQuotesTheRest) {
  EXPECT_EQ(shellQuote("a/b=c:1,2@x%y+z-w.t"), "a/b=c:1,2@x%y+z-w.t");
  EXPECT_EQ(shellQuote(""), "''");
  EXPECT_EQ(shellQuote("a b"), "'a b'");
  EXPECT_EQ(shellQuote("$(id)"), "'$(id)'");
  EXPECT_EQ(shellQuote("it's"), "'it'\\''s'");
}

}  // namespace dtf::launcher
