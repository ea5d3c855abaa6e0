#include "tests/unit/graph/control_functions.h"
#include "tests/unit/runtime/kernel_fixture.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;
using graph::testing::functionOf;
using ::testing::ElementsAre;
using Outputs = std::vector<Output>;
using Parameters = std::span<const Output>;

class CpuKernelsControl : public KernelTest {
 protected:
  // A loop that adds the slices of `s` to `x`, and stacks each sum.
  graph::Builder::WhileArguments summing(Output x, Output s, int64_t slices) {
    return {.carried = {x},
            .sequences = {s},
            .captured = {},
            .body = functionOf(2, {1},
                               [](graph::Builder& b, Parameters p) {
                                 const Output sum = b.add(p[0], p[1]);
                                 return Outputs{sum, sum};
                               }),
            .cond = nullptr,
            .max_iterations = slices,
            .stacked = 1};
  }
};

TEST_F(CpuKernelsControl, AnIfRunsOneBranch) {
  const auto twice =
      functionOf(1, {2}, [](graph::Builder& b, Parameters p) { return Outputs{b.scale(p[0], 2)}; });
  const auto same = functionOf(1, {2}, [](graph::Builder&, Parameters p) { return Outputs{p[0]}; });
  const Output x = fed({2}, {1, 5});
  EXPECT_THAT(computed(b_.cond(fed({}, {1}), {x}, twice, same)[0]), ElementsAre(2, 10));
  EXPECT_THAT(computed(b_.cond(fed({}, {0}), {x}, twice, same)[0]), ElementsAre(1, 5));
  EXPECT_THAT(computed(b_.cond(fed({}, {0}, DType::kInt64), {x}, twice, same)[0]),
              ElementsAre(1, 5));
}

TEST_F(CpuKernelsControl, ALoopCarriesItsStateOverTheSlices) {
  const auto loop = b_.whileLoop(summing(fed({1}, {100}), fed({3, 1}, {1, 2, 3}), 3));
  EXPECT_THAT(computed(loop.carried[0]), ElementsAre(106));
  EXPECT_THAT(computed(loop.iterations), ElementsAre(3));
  EXPECT_THAT(computed(loop.stacked[0]), ElementsAre(101, 103, 106));
}

TEST_F(CpuKernelsControl, BackwardsItTakesTheLastSliceFirst) {
  auto arguments = summing(fed({1}, {100}), fed({3, 1}, {1, 2, 3}), 3);
  arguments.reverse = true;
  EXPECT_THAT(computed(b_.whileLoop(arguments).stacked[0]), ElementsAre(106, 105, 103));
}

TEST_F(CpuKernelsControl, ACondEndsItAndWhatDidNotRunLeavesZeros) {
  auto arguments = summing(fed({1}, {0}), fed({4, 1}, {1, 2, 3, 4}), 4);
  arguments.cond = functionOf(1, {1}, [](graph::Builder& b, Parameters p) {
    return Outputs{b.less(b.sum(p[0]), b.constant({}, 3))};
  });
  const auto loop = b_.whileLoop(arguments);
  EXPECT_THAT(computed(loop.iterations), ElementsAre(2));
  EXPECT_THAT(computed(loop.stacked[0]), ElementsAre(1, 3, 0, 0));
}

}  // namespace
}  // namespace dtf::runtime::testing
