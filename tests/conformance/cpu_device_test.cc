// The device suite on the CPU, once for each instruction set of this machine. Every graph gives the
// same bits on one thread and on two, three and five, which split even the smallest work.

#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/conformance/device_suite.h"

namespace dtf::runtime::testing {
namespace {

struct Pools {
  ComputePool two{2}, three{3}, five{5};
};

DeviceUnderTest makeCpu(Isa isa) {
  DeviceUnderTest made;
  made.device = std::make_unique<CpuDevice>();
  registerCpuKernels(made.kernels, isa);
  const auto pools = std::make_shared<Pools>();
  for (ComputePool* const pool : {&pools->two, &pools->three, &pools->five}) {
    Processor cpu(isa, pool);
    cpu.part_work = 1;
    registerCpuKernels(made.alike.emplace_back(), cpu);
  }
  made.owned = pools;
  return made;
}

std::vector<DeviceFactory> cpus() {
  std::vector<DeviceFactory> factories;
  for (const Isa isa : supportedIsas()) {
    std::string name = "cpu_" + std::string(isaName(isa));
    std::replace(name.begin(), name.end(), '-', '_');
    factories.push_back({name, [isa] { return makeCpu(isa); }});
  }
  return factories;
}

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceSuite, ::testing::ValuesIn(cpus()), deviceTestName);

}  // namespace
}  // namespace dtf::runtime::testing
