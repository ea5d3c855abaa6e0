#include "common/train/device_operations.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"

namespace dtf::train {
namespace {

TEST(DeviceOperations, RunInTheirOrderOnMemoryThatStays) {
  runtime::CpuDevice device;
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels);
  DeviceOperations operations({&device, &kernels});
  const graph::TensorSpec spec{DType::kFloat32, {3}};
  const runtime::DeviceMemory x = device.allocate(12), y = device.allocate(12),
                              z = device.allocate(12);
  operations.add("Add", {}, {{spec, x.get()}, {spec, x.get()}}, {{spec, y.get()}});
  operations.add("Mul", {}, {{spec, y.get()}, {spec, y.get()}}, {{spec, z.get()}});
  operations.prepare();
  for (const float value : {1.0f, 3.0f}) {
    const std::array<float, 3> from = {value, -value, 0};
    std::memcpy(x.get(), from.data(), 12);
    operations.run();
    std::array<float, 3> to = {};
    std::memcpy(to.data(), z.get(), 12);
    EXPECT_EQ(to, (std::array<float, 3>{4 * value * value, 4 * value * value, 0}));
  }
}

TEST(DeviceOperations, NoneAreRunAsWell) {
  runtime::CpuDevice device;
  const runtime::KernelTable kernels;
  DeviceOperations operations({&device, &kernels});
  operations.prepare();
  EXPECT_TRUE(operations.empty());
  operations.run();
}

}  // namespace
}  // namespace dtf::train
