// The device suite on the plug-in of tests/gpu: the boundary, and the arithmetic and indexing of
// gpu/kernels on the host. gpu_device_test.cc tests the rest: races between the threads of a GPU,
// cuBLASLt, cuDNN, CUDA graphs.

#include <gmock/gmock.h>

#include "common/base/error.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/runtime/plugin_device.h"
#include "tests/conformance/device_case.h"
#include "tests/gpu/plugin_under_test.h"

namespace dtf::runtime::testing {
namespace {

DeviceUnderTest makeHostPluginDevice() {
  DeviceUnderTest made;
  made.device = std::make_unique<PluginDevice>(hostPlugin(), 0);
  registerPluginKernels(made.kernels, hostPlugin());
  made.lacks = kGpuLacks;
  return made;
}

INSTANTIATE_TEST_SUITE_P(HostPlugin, DeviceSuite,
                         ::testing::Values(DeviceFactory{"host_plugin", makeHostPluginDevice}),
                         deviceTestName);

TEST(PluginDevice, DrawsTheNumbersOfACpu) {
  Case c;
  const Output seed = c.b.placeholder("seed", DType::kInt64, {2});
  c.feeds[seed] = {-3, 0x1p33 + 5};
  const std::vector<Output> fetches = {c.b.randomUniform(seed, {10'001}, 7),
                                       c.b.randomNormal(seed, {10'001}, 8)};
  DeviceUnderTest plugin = makeHostPluginDevice();
  StepRunner ours(*plugin.device, plugin.kernels, c.graph, c.feeds, fetches);
  CpuDevice cpu;
  KernelTable cpu_kernels;
  registerCpuKernels(cpu_kernels);
  StepRunner theirs(cpu, cpu_kernels, c.graph, c.feeds, fetches);
  ours.run();
  theirs.run();
  for (const int i : {0, 1}) EXPECT_EQ(ours.fetch(i), theirs.fetch(i)) << i;
}

TEST(PluginDevice, SaysWhatItCantRepeat) {
  const Shape shape{2, 1, 2, 1, 2, 1, 2, 1, 2}, other{1, 2, 1, 2, 1, 2, 1, 2, 1};
  Case c;
  const std::vector<Output> fetches = {c.b.add(c.floats(shape), c.floats(other))};
  const DeviceUnderTest plugin = makeHostPluginDevice();
  try {
    compile(c.graph, fetches, *plugin.device, plugin.kernels);
    ADD_FAILURE() << "it was compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("Place it on a CPU"));
  }
}

}  // namespace
}  // namespace dtf::runtime::testing
