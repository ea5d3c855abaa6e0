#include "common/train/worker_devices.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/base/error.h"
#include "tests/gpu/plugin_under_test.h"

namespace dtf::train {
namespace {

TEST(WorkerDevices, OneDeviceIsItsOnlyTower) {
  WorkerDevices devices({"cpu:0"}, 2, runtime::tableRule());
  EXPECT_EQ(devices.threads(), 2);
  ASSERT_EQ(devices.towers().each.size(), 1u);
  EXPECT_EQ(devices.towers().each[0].device, &devices.device());
  EXPECT_EQ(devices.towers().each[0].kernels, &devices.kernels());
  EXPECT_EQ(devices.towers().together, nullptr);
}

TEST(WorkerDevices, SeveralHaveKernelsOfTheirOwnAndNoMoreThreadsThanTheWorker) {
  WorkerDevices devices({"cpu:2", "cpu:0", "cpu:1"}, 2, runtime::tableRule());
  EXPECT_EQ(devices.device().name(), "cpu:2");
  ASSERT_EQ(devices.towers().each.size(), 3u);
  EXPECT_EQ(devices.towers().each[1].device->name(), "cpu:0");
  EXPECT_NE(devices.towers().each[0].kernels, devices.towers().each[1].kernels);
  EXPECT_NE(devices.towers().each[0].device, &devices.device());
  EXPECT_EQ(devices.towers().together->threads(), 2);
}

// The plug-in of tests/gpu computes on the host: the tests show that a worker's device can be any
// plug-in's.
class GpuWorkerDevices : public ::testing::Test {
 protected:
  GpuWorkerDevices() {
    ::setenv("DTF_GPU_PLUGIN", runtime::testing::testPluginPath("host").c_str(), 1);
  }
  ~GpuWorkerDevices() override { ::unsetenv("DTF_GPU_PLUGIN"); }
};

TEST_F(GpuWorkerDevices, AGpuIsThePluginsWithItsKernels) {
  WorkerDevices devices({"gpu:0"}, 1, runtime::tableRule());
  EXPECT_EQ(devices.device().name(), "gpu:0");
  EXPECT_EQ(devices.device().type(), runtime::DeviceType::kGpu);
  EXPECT_TRUE(devices.kernels().has("Conv2D", runtime::DeviceType::kGpu));
}

TEST_F(GpuWorkerDevices, TowersMayBeOfBothKinds) {
  WorkerDevices devices({"gpu:0", "cpu:0"}, 2, runtime::tableRule());
  ASSERT_EQ(devices.towers().each.size(), 2u);
  EXPECT_EQ(devices.towers().each[0].device->type(), runtime::DeviceType::kGpu);
  EXPECT_EQ(devices.towers().each[1].device->type(), runtime::DeviceType::kCpu);
}

TEST_F(GpuWorkerDevices, AMissingGpuIsNeverReplaced) {
  try {
    WorkerDevices devices({"gpu:5"}, 1, runtime::tableRule());
    ADD_FAILURE() << "the host has one";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(error.message().find("no device gpu:5"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace dtf::train
