// The device suite on the plug-in of tests/gpu: the boundary, and the arithmetic and indexing of gpu/kernels on the
// host. What it can't see: races between the threads of a GPU, cuBLASLt, cuDNN, CUDA graphs. Those are gpu_device_test.cc's.

#include "common/runtime/plugin_device.h"
#include "tests/conformance/device_suite.h"
#include "tests/gpu/plugin_under_test.h"

namespace dtf::runtime::testing {
namespace {

DeviceUnderTest makeHostPluginDevice() {
  DeviceUnderTest made;
  made.device = std::make_unique<PluginDevice>(hostPlugin(), 0);
  registerPluginKernels(made.kernels, hostPlugin());
  made.lacks = kGpuLacks;
  made.broadcasts = false;
  return made;
}

INSTANTIATE_TEST_SUITE_P(HostPlugin, DeviceSuite,
                         ::testing::Values(DeviceFactory{"host_plugin", makeHostPluginDevice}),
                         deviceTestName);

}  // namespace
}  // namespace dtf::runtime::testing
