#include "tests/unit/runtime/kernel_fixture.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;
using ::testing::HasSubstr;

class CpuKernelsConvPool : public KernelTest {};

// A first layer: convolution, bias, relu and pooling in one pass over the image.
TEST_F(CpuKernelsConvPool, AFirstLayerIsOneKernelWithTheSameResult) {
  Random random(3);
  for (const int64_t window : {2, 3}) {
    const Output x = fed({2, 20, 20, 4}, randomValues(random, 2 * 20 * 20 * 4));
    const Output filter = fed({3, 3, 4, 4}, randomValues(random, 3 * 3 * 4 * 4));
    const Output bias = fed({4}, randomValues(random, 4));
    const Output pooled =
        b_.maxPool(b_.relu(b_.biasAdd(b_.conv2D(x, filter), bias)), {{window, 2}, {window, 2}}).y;
    const auto step = compile(graph_, std::array{pooled}, device_, kernels_);
    ASSERT_THAT(step->plan().str(), HasSubstr("_FusedConvBiasReluMaxPool"));
    expectNear(computed(pooled), computed(pooled, {.fuse = false}), 1e-4);
  }
}

}  // namespace
}  // namespace dtf::runtime::testing
