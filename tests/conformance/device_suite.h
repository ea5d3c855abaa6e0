#pragma once

// Requirements on every device: each op against the double-precision reference, and whole training
// steps, fused and separate. A back end instantiates the suite with a factory:
//
//   INSTANTIATE_TEST_SUITE_P(Cuda, DeviceSuite, ::testing::Values(DeviceFactory{"cuda", makeCuda}),
//   deviceTestName);

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "common/runtime/device.h"
#include "common/runtime/kernel.h"

namespace dtf::runtime::testing {

struct DeviceUnderTest {
  std::unique_ptr<Device> device;
  KernelTable kernels;
  std::vector<KernelTable> alike;            // tables that must give the same bits as `kernels`
  std::shared_ptr<const void> owned;         // borrowed by the kernels
  double long_sums = 1e-4;                   // tolerance of sums of some thousand terms
  std::set<std::string, std::less<>> lacks;  // ops without a kernel
};

// Ops that gpu/README.md lists as missing.
inline const std::set<std::string, std::less<>> kGpuLacks = {"If", "While"};

struct DeviceFactory {
  std::string name;  // letters, digits and _
  std::function<DeviceUnderTest()> make;
};
inline void PrintTo(const DeviceFactory& factory, std::ostream* out) {
  *out << factory.name;
}

class DeviceSuite : public ::testing::TestWithParam<DeviceFactory> {
 protected:
  DeviceUnderTest device_ = GetParam().make();
};

inline std::string deviceTestName(const ::testing::TestParamInfo<DeviceFactory>& info) {
  return info.param.name;
}

}  // namespace dtf::runtime::testing
