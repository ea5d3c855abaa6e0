#include "common/serving/task_devices.h"

#include <gtest/gtest.h>

#include "common/base/host_memory.h"

namespace dtf::serving {
namespace {

cluster::ClusterSpec twoTasksOnThisHost() {
  cluster::ClusterSpec cluster;
  cluster.ps.emplace_back().address = {"localhost", 2222};
  cluster.worker.emplace_back().address = {"127.0.0.1", 2223};
  cluster.worker[0].devices = {"cpu:0", "cpu:1"};
  cluster.worker[0].threads = 4;
  return cluster;
}

TEST(TaskDevices, AreTheClustersAndShareTheThreads) {
  const TaskId worker{JobKind::kWorker, 0};
  const ComputingDevices devices = makeDevices(twoTasksOnThisHost(), worker);
  ASSERT_EQ(devices.size(), 2U);
  for (const auto& device : devices) EXPECT_EQ(device->pool.threads(), 2);
  const auto named = sessionDevices(worker, devices);
  EXPECT_EQ(named[1].name.str(), "/job:worker/replica:0/task:0/device:CPU:1");
  EXPECT_EQ(named[1].device, devices[1]->device.get());
}

TEST(TaskDevices, OfAPsAreOneCpu) {
  EXPECT_EQ(makeDevices(twoTasksOnThisHost(), {JobKind::kPs, 0}).size(), 1U);
}

TEST(TaskDevices, MemoryIsTheShareOfTheTasksOfThisHost) {
  const PartServerOptions options = serverOptions(twoTasksOnThisHost(), {JobKind::kWorker, 0}, 1);
  EXPECT_EQ(options.limits.bytes, hostMemory().total / 4 * 3 / 2);
  EXPECT_LE(options.limits.rendezvous.bytes, options.limits.bytes / 4);
  EXPECT_EQ(options.ps.size(), 1U);
  EXPECT_EQ(options.workers[0].str(), "127.0.0.1:2223");
  EXPECT_NE(options.incarnation.value, 0U);
}

// A session has a connection from its client, and one from each other task.
TEST(TaskDevices, ATaskLetsInTheConnectionsOfItsSessions) {
  ServeLimits few, many;
  setSessionsMax(16, 4, few);
  EXPECT_EQ(few.sessions, 16U);
  EXPECT_EQ(few.connections, ServeLimits{}.connections);
  setSessionsMax(512, 10, many);
  EXPECT_GE(many.connections, 5120U);
}

TEST(TaskDevices, ABoundOnMemoryBoundsTheTensorsThatWait) {
  ServeLimits limits;
  setBytesMax(1000, limits);
  EXPECT_EQ(limits.bytes, 1000U);
  EXPECT_EQ(limits.rendezvous.bytes, 250U);
}

}  // namespace
}  // namespace dtf::serving
