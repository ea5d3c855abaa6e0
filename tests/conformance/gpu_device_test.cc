// The device suite on a real GPU. Without one it prints so and exits with 77, which counts as
// skipped; with DTF_REQUIRE_GPU=1 it fails.

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/compiled_step.h"
#include "common/runtime/plugin_device.h"
#include "tests/conformance/device_suite.h"

namespace dtf::runtime::testing {
namespace {

DeviceUnderTest makeGpuDevice() {
  DeviceUnderTest made;
  made.device = std::make_unique<PluginDevice>(gpuPlugin(), 0);
  registerPluginKernels(made.kernels, gpuPlugin());
  made.long_sums = 5e-4;  // a plain float32 sum, in an order of cuDNN's
  made.lacks = kGpuLacks;
  return made;
}

INSTANTIATE_TEST_SUITE_P(Gpu, DeviceSuite, ::testing::Values(DeviceFactory{"gpu", makeGpuDevice}),
                         deviceTestName);

// Returns why there is no GPU; empty if there is one, which it prints.
std::string missing() {
  try {
    PluginDevice device(gpuPlugin(), 0);
    std::printf("on %s with %s\n", device.description().c_str(), gpuPlugin()->backend().c_str());
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

// Counts over all cases; each case has a device of its own.
class LaunchCounter final : public ::testing::EmptyTestEventListener {
 public:
  void OnTestProgramEnd(const ::testing::UnitTest& unit_test) override {
    std::printf("%d cases ran on the GPU\n", unit_test.successful_test_count());
  }
};

TEST(GpuDevice, CountsTheKernelsThatRanOnIt) {
  PluginDevice device(gpuPlugin(), 0);
  KernelTable kernels;
  registerPluginKernels(kernels, gpuPlugin());
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const graph::Output y = b.relu(b.constant({100}, 3));
  const auto step = compile(graph, std::array{y}, device, kernels);
  constexpr uint64_t kRuns = 5;  // the first run is not captured, the second is
  for (uint64_t run = 1; run <= kRuns; ++run) {
    step->run();
    EXPECT_EQ(device.kernelsLaunched(), run);
    EXPECT_EQ(step->fetch(0)[99], 3);
  }
}

TEST(GpuDevice, SaysThatItIsOutOfMemoryAndGoesOn) {
  PluginDevice device(gpuPlugin(), 0);
  try {
    (void)device.allocate(size_t{1} << 50);
    FAIL() << "it has a PiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("out of memory"));
  }
  const DeviceMemory memory = device.allocate(4);
  const std::array<std::byte, 4> sent = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::array<std::byte, 4> back = {};
  device.copyToDevice(memory.get(), sent.data(), 4);
  device.copyToHost(back.data(), memory.get(), 4);
  device.synchronise();
  EXPECT_EQ(back, sent);
}

// A captured step gives the bits of an uncaptured one.
TEST(GpuDevice, ACapturedStepIsTheSame) {
  PluginDevice device(gpuPlugin(), 0);
  KernelTable kernels;
  registerPluginKernels(kernels, gpuPlugin());
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const graph::Output x = b.placeholder("x", DType::kFloat32, {33, 70});
  const graph::Output y = b.softmax(b.matMul(x, b.placeholder("w", DType::kFloat32, {70, 45})));
  const auto step = compile(graph, std::array{y}, device, kernels);
  std::vector<float> of_x(33 * 70), of_w(70 * 45);
  for (size_t i = 0; i < of_x.size(); ++i) of_x[i] = static_cast<float>(i % 17) - 8;
  for (size_t i = 0; i < of_w.size(); ++i) of_w[i] = static_cast<float>(i % 13) / 13;
  step->bindInput(step->input("x"), reinterpret_cast<const std::byte*>(of_x.data()));
  step->bindInput(step->input("w"), reinterpret_cast<const std::byte*>(of_w.data()));
  step->run();
  const std::vector<float> first(step->fetch(0).begin(), step->fetch(0).end());
  for (int run = 0; run < 3; ++run) {
    step->run();
    EXPECT_TRUE(std::equal(first.begin(), first.end(), step->fetch(0).begin())) << "run " << run;
    EXPECT_GT(step->deviceSeconds().value_or(0), 0);
  }
}

}  // namespace
}  // namespace dtf::runtime::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const std::string why = dtf::runtime::testing::missing();
  if (!why.empty()) {
    const char* const required = std::getenv("DTF_REQUIRE_GPU");
    std::printf("SKIPPED: %s\n", why.c_str());
    return required != nullptr && std::string(required) == "1" ? 1 : 77;
  }
  ::testing::UnitTest::GetInstance()->listeners().Append(new dtf::runtime::testing::LaunchCounter);
  return RUN_ALL_TESTS();
}
