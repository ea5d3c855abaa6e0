// The device suite on the CPU, once per instruction set that this machine has.

#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/conformance/device_suite.h"

namespace dtf::runtime::testing {
namespace {

std::vector<DeviceFactory> cpus() {
  std::vector<DeviceFactory> factories;
  for (const Isa isa : supportedIsas()) {
    std::string name = "cpu_" + std::string(isaName(isa));
    std::replace(name.begin(), name.end(), '-', '_');
    factories.push_back({name, [isa] {
                           DeviceUnderTest made{std::make_unique<CpuDevice>(), {}};
                           registerCpuKernels(made.kernels, isa);
                           return made;
                         }});
  }
  return factories;
}

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceSuite, ::testing::ValuesIn(cpus()), deviceTestName);

}  // namespace
}  // namespace dtf::runtime::testing
