// Properties of the CPU's kernels alone; the device suite tests their results.

#include "common/runtime/cpu_kernels.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "common/base/isa.h"
#include "common/runtime/compute_pool.h"
#include "common/runtime/cpu_device.h"
#include "tests/unit/runtime/count_allocations.h"
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

// A reader that shares the result's memory must run after all other readers.
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

// A few strides describe the copy. A list of its elements would be twice the tensor, in memory that
// no budget counts.
TEST_F(CpuKernels, ThatCopyPartsArePreparedInMemoryThatNoShapeMakesLarger) {
  const auto allocations = [&](const std::string& op, int64_t from, int64_t to,
                               const graph::Attributes& attributes) {
    Operation operation;
    operation.op = op;
    operation.attributes = attributes;
    operation.input_specs = {{DType::kFloat32, {from, from}}};
    operation.output_specs = {{DType::kFloat32, {to, to}}};
    const testing::CountAllocations counted;
    kernels_.make(operation, DeviceType::kCpu);
    return counted.count();
  };
  for (const int64_t n : {200, 2000}) {
    EXPECT_EQ(allocations("Transpose", 4, 4, {{"permutation", Shape{1, 0}}}),
              allocations("Transpose", n, n, {{"permutation", Shape{1, 0}}}));
    EXPECT_EQ(allocations("Slice", 5, 4, {{"begin", Shape{1, 0}}}),
              allocations("Slice", n + 1, n, {{"begin", Shape{1, 0}}}));
    EXPECT_EQ(allocations("Pad", 4, 5, {{"before", Shape{0, 1}}}),
              allocations("Pad", n, n + 1, {{"before", Shape{0, 1}}}));
  }
}

// On several threads: an input without an element has no address to count columns from.
TEST_F(CpuKernels, SumNoRowsToZero) {
  ComputePool pool(2);
  KernelTable kernels;
  registerCpuKernels(kernels, {bestIsa(), &pool});
  Operation sum;
  sum.op = "BiasAddGrad";
  sum.input_specs = {{DType::kFloat32, {0, 1 << 20}}};
  sum.output_specs = {{DType::kFloat32, {1 << 20}}};
  std::vector<float> db(1 << 20, 7);
  const std::byte* inputs[] = {nullptr};
  std::byte* outputs[] = {reinterpret_cast<std::byte*>(db.data())};
  kernels.make(sum, DeviceType::kCpu)->run({inputs, outputs, nullptr});
  EXPECT_EQ(db, std::vector<float>(1 << 20, 0));
}

}  // namespace
}  // namespace dtf::runtime
