#include "launcher/slurm/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "common/base/error.h"

namespace dtf::launcher {

namespace {

cluster::JobSpec counted(size_t ps, size_t workers) {
  cluster::JobSpec job;
  cluster::TaskSpec task;
  task.address = {"localhost", 0};
  task.by_count = true;
  job.cluster.ps.assign(ps, task);
  job.cluster.worker.assign(workers, task);
  return job;
}

std::string hostsOf(const std::vector<cluster::TaskSpec>& tasks) {
  std::string text;
  for (const cluster::TaskSpec& task : tasks) text += task.address.host + " ";
  return text;
}

}  // namespace

TEST(Allocation, TasksThatAreOnlyCountedTakeTheNodesInTurn) {
  cluster::JobSpec job = counted(2, 5);
  placeOnNodes(job, {"one", "two"});
  EXPECT_EQ(hostsOf(job.cluster.ps), "one two ");
  EXPECT_EQ(hostsOf(job.cluster.worker), "one two one two one ");
}

TEST(Allocation, TheWorkersOfAJobWithoutPsTakeTheNodesInTurn) {
  cluster::JobSpec job = counted(0, 3);
  placeOnNodes(job, {"one", "two"});
  EXPECT_EQ(hostsOf(job.cluster.worker), "one two one ");
  EXPECT_TRUE(job.cluster.workersHost());
  checkNodes(job, {"one", "two"});
}

TEST(Allocation, ATaskWithAnAddressMustBeOnANode) {
  cluster::JobSpec job = counted(1, 1);
  job.cluster.worker[0].by_count = false;
  job.cluster.worker[0].address.host = "Two";
  placeOnNodes(job, {"one", "two"});
  EXPECT_EQ(hostsOf(job.cluster.worker), "two ");
  checkNodes(job, {"one", "two"});
  job.cluster.worker[0].address.host = "three";
  try {
    checkNodes(job, {"one", "two"});
    FAIL() << "it is on a node";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("'three' is not a node of the allocation: one, two"));
  }
}

TEST(Allocation, TooFewNodesAreSaidSo) {
  cluster::JobSpec job = counted(1, 2);
  job.launch.slurm.nodes = 2;
  EXPECT_EQ(nodesToCome(job.launch.slurm),
            (std::vector<std::string>{"slurm-node-0.invalid", "slurm-node-1.invalid"}));
  EXPECT_TRUE(isNodeToCome("slurm-node-1.invalid"));
  EXPECT_FALSE(isNodeToCome("slurm-node-1"));
  try {
    checkNodes(job, {"one"});
    FAIL() << "one node is enough";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the job needs 2 nodes"));
  }
}

TEST(Allocation, WithoutOneItSaysHowToGetOne) {
  ::unsetenv("SLURM_JOB_NODELIST");
  try {
    allocatedNodes();
    FAIL() << "there is one";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("dtf-launch submit"));
  }
}

}  // namespace dtf::launcher
