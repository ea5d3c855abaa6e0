// The gradients of convolutions and pooling.

#include "tests/unit/graph/autodiff_test.h"

namespace dtf::graph {
namespace {

using testing::AutodiffTest;

constexpr Window kPlain;
constexpr Window kSparse = {{.stride = 2, .dilation = 2, .before = 1, .after = 2},
                            {.stride = 1, .dilation = 3, .before = 2, .after = 0}};

TEST_F(AutodiffTest, Conv2D) {
  check(b_.conv2D(randomInput("x", {2, 4, 5, 2}), randomInput("f", {3, 2, 2, 3}), kPlain));
}
TEST_F(AutodiffTest, Conv2DWithStrideDilationPaddingAndGroups) {
  check(b_.conv2D(randomInput("x", {2, 6, 5, 4}), randomInput("f", {3, 2, 2, 6}), kSparse, 2));
}

// Values far apart: no difference step changes which element is the largest.
TEST_F(AutodiffTest, MaxPool) {
  const Output x = randomInput("x", {2, 5, 4, 3});
  for (size_t i = 0; i < feeds_[x].size(); ++i) feeds_[x][i] = static_cast<double>(i * 37 % 120);
  check(b_.maxPool(x, {{.size = 3, .stride = 2, .before = 1, .after = 1}, {.size = 2}}).y);
}

TEST_F(AutodiffTest, AvgPool) {
  check(b_.avgPool(randomInput("x", {2, 5, 4, 3}),
                   {{.size = 3, .stride = 2, .before = 1, .after = 1}, {.size = 2, .after = 1}}));
}
TEST_F(AutodiffTest, GlobalAvgPool) {
  check(b_.globalAvgPool(randomInput("x", {2, 3, 4, 5})));
}

TEST_F(AutodiffTest, BiasAddOfImages) {
  check(b_.biasAdd(randomInput("x", {2, 3, 2, 4}), randomInput("b", {4})));
}

}  // namespace
}  // namespace dtf::graph
