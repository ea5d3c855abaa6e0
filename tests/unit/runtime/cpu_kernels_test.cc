// The numbers are tested by the device suite; here what only the CPU's kernels promise.

#include "common/runtime/cpu_kernels.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "common/runtime/cpu_device.h"
#include "tests/unit/runtime/models.h"
#include "tests/unit/runtime/step_runner.h"

namespace dtf::runtime {
namespace {

using testing::makeClassifier;
using testing::StepRunner;

class CpuKernels : public ::testing::Test {
 protected:
  CpuKernels() { registerCpuKernels(kernels_); }
  CpuDevice device_;
  KernelTable kernels_;
};

TEST_F(CpuKernels, RunInAnotherThreadThanTheirMaker) {
  Random random(1);
  const testing::Classifier model =
      makeClassifier(random, {.batch = 9, .inputs = 50, .hidden = {20}});
  const std::vector<graph::Output> fetches = {model.loss};
  StepRunner runner(device_, kernels_, model.graph, model.feeds, fetches);
  runner.run();
  const testing::Values here = runner.gradient("w0");
  std::thread([&] { runner.run(); }).join();
  EXPECT_EQ(runner.gradient("w0"), here);
}

// A reader that lives in the same memory must come after nothing else needs it.
TEST_F(CpuKernels, SumManyTermsFromLeftToRightInPlace) {
  Operation add;
  add.op = "AddN";
  const graph::TensorSpec spec{DType::kFloat32, {4}};
  add.input_specs = {spec, spec, spec};
  add.output_specs = {spec};
  const auto kernel = kernels_.make(add, DeviceType::kCpu);
  EXPECT_TRUE(kernel->canOverwrite(0, 1));
  EXPECT_FALSE(kernel->canOverwrite(0, 2));
  float a[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40}, c[] = {100, 200, 300, 400};
  const std::byte* inputs[] = {reinterpret_cast<std::byte*>(a), reinterpret_cast<std::byte*>(b),
                               reinterpret_cast<std::byte*>(c)};
  std::byte* outputs[] = {reinterpret_cast<std::byte*>(b)};
  kernel->run({inputs, outputs, nullptr});
  EXPECT_EQ(b[3], 444);
}

TEST_F(CpuKernels, MultiplyOverAnEmptySumToZero) {
  Operation product;
  product.op = "MatMul";
  product.input_specs = {{DType::kFloat32, {2, 0}}, {DType::kFloat32, {0, 2}}};
  product.output_specs = {{DType::kFloat32, {2, 2}}};
  float c[] = {7, 7, 7, 7};
  const std::byte* inputs[] = {nullptr, nullptr};
  std::byte* outputs[] = {reinterpret_cast<std::byte*>(c)};
  kernels_.make(product, DeviceType::kCpu)->run({inputs, outputs, nullptr});
  EXPECT_EQ(std::accumulate(c, c + 4, 0.0f), 0.0f);
}

}  // namespace
}  // namespace dtf::runtime
