#include "common/runtime/computing_device.h"

#include <gtest/gtest.h>

namespace dtf::runtime {
namespace {

// A process loads the plug-in only once: tests/unit/train/worker_devices_test.cc tests GPUs.
TEST(ComputingDevice, TheDevicesOfATaskShareItsThreads) {
  EXPECT_EQ(threadsOfEach(8, 1), 8);
  EXPECT_EQ(threadsOfEach(8, 2), 4);
  EXPECT_EQ(threadsOfEach(7, 2), 3);
  EXPECT_EQ(threadsOfEach(1, 4), 1);
}

TEST(ComputingDevice, ItsFullNameIsWhatAGraphCallsIt) {
  EXPECT_EQ(fullName({JobKind::kWorker, 2}, "cpu:1").str(),
            "/job:worker/replica:0/task:2/device:CPU:1");
  EXPECT_EQ(fullName({JobKind::kPs, 0}, "gpu:3").str(), "/job:ps/replica:0/task:0/device:GPU:3");
}

TEST(ComputingDevice, ACpuHasKernelsAndThreadsOfItsOwn) {
  const ComputingDevice cpu("cpu:3", 2, tableRule());
  EXPECT_EQ(cpu.device->name(), "cpu:3");
  EXPECT_EQ(cpu.device->type(), DeviceType::kCpu);
  EXPECT_EQ(cpu.pool.threads(), 2);
  EXPECT_TRUE(cpu.kernels.has("MatMul", DeviceType::kCpu));
  EXPECT_FALSE(cpu.kernels.has("MatMul", DeviceType::kGpu));
}

}  // namespace
}  // namespace dtf::runtime
