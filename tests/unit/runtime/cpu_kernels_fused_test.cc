#include "tests/unit/runtime/kernel_fixture.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;
using ::testing::HasSubstr;

class CpuKernelsFused : public KernelTest {};

TEST_F(CpuKernelsFused, ASoftmaxLayerIsOneKernelWithTheSameLoss) {
  const Output x = fed({2, 3}, {0.5, -1, 2, 1, 0, -0.25}), labels = fed({2}, {1, 0}, DType::kInt32);
  const Output w = fed({3, 2}, {1, -1, 0.5, 2, -0.5, 0.25}), bias = fed({2}, {0.1, -0.2});
  const Output loss =
      b_.mean(b_.sparseSoftmaxCrossEntropy(b_.biasAdd(b_.matMul(x, w), bias), labels).loss);
  const auto step = compile(graph_, std::array{loss}, device_, kernels_);
  ASSERT_THAT(step->plan().str(), HasSubstr("_FusedSoftmax"));
  expectNear(computed(loss), computed(loss, {.fuse = false}), 1e-6);
}

TEST_F(CpuKernelsFused, ALabelWithoutAClassIsBadData) {
  const Output x = fed({1, 2}, {1, 2}), w = fed({2, 2}, {1, 0, 0, 1}), bias = fed({2}, {0, 0});
  const Output labels = fed({1}, {2}, DType::kUInt8);
  EXPECT_THAT(refusal(b_.mean(
                  b_.sparseSoftmaxCrossEntropy(b_.biasAdd(b_.matMul(x, w), bias), labels).loss)),
              HasSubstr("the label of row 0 is 2, it must be in [0, 2)"));
}

}  // namespace
}  // namespace dtf::runtime::testing
