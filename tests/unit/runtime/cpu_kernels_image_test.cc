#include "tests/unit/runtime/kernel_fixture.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;
using ::testing::ElementsAre;

class CpuKernelsImage : public KernelTest {};

TEST_F(CpuKernelsImage, ConvolutionsAreProductsOfWindows) {
  const Output x = fed({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Output f = fed({2, 2, 1, 1}, {1, 10, 100, 1000});
  EXPECT_THAT(computed(b_.conv2D(x, f)), ElementsAre(5421, 6532, 8754, 9865));
  EXPECT_THAT(computed(b_.conv2D(x, f, {{.stride = 2}, {.stride = 2}})), ElementsAre(5421));
}

TEST_F(CpuKernelsImage, APoolingKeepsTheFirstOfEqualOnes) {
  const auto pooled = b_.maxPool(fed({1, 2, 2, 1}, {4, 9, 9, 1}), {{.size = 2}, {.size = 2}});
  EXPECT_THAT(computed(pooled.y), ElementsAre(9));
  EXPECT_THAT(computed(pooled.argmax), ElementsAre(1));
}

TEST_F(CpuKernelsImage, APaddingIsNoPartOfAMean) {
  const graph::Window around = {{.size = 3, .before = 1, .after = 1},
                                {.size = 3, .before = 1, .after = 1}};
  EXPECT_THAT(computed(b_.avgPool(fed({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), around)),
              ElementsAre(3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7));
}

TEST_F(CpuKernelsImage, GroupsReadTheirOwnChannels) {
  const Output x = fed({1, 1, 1, 2}, {10, 100}), f = fed({1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(computed(b_.depthwiseConv2D(x, f)), ElementsAre(10, 20, 300, 400));
}

}  // namespace
}  // namespace dtf::runtime::testing
