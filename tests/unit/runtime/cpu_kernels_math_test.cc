#include <cmath>

#include "tests/unit/runtime/kernel_fixture.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;
using ::testing::ElementsAre;

class CpuKernelsMath : public KernelTest {};

TEST_F(CpuKernelsMath, OperandsAreRepeated) {
  const Output rows = fed({2, 1}, {10, 20}), columns = fed({3}, {1, 2, 3});
  EXPECT_THAT(computed(b_.add(rows, columns)), ElementsAre(11, 12, 13, 21, 22, 23));
  EXPECT_THAT(computed(b_.less(columns, fed({1}, {2}))), ElementsAre(1, 0, 0));
}

TEST_F(CpuKernelsMath, MaximumAndMinimumKeepNan) {
  const Output x = fed({3}, {1, std::nan(""), 3}), y = fed({3}, {2, 0, std::nan("")});
  for (const Output output : {b_.maximum(x, y), b_.minimum(x, y)}) {
    const Values values = computed(output);
    EXPECT_EQ(values[0], output == Output{graph_.find("Maximum")->id} ? 2 : 1);
    EXPECT_TRUE(std::isnan(values[1]) && std::isnan(values[2]));
  }
}

TEST_F(CpuKernelsMath, ACastTakesTheNearestThatTheTypeHas) {
  const Output x = fed({5}, {1.75, -1.75, 300, -1e10, std::nan("")});
  EXPECT_THAT(computed(b_.cast(x, DType::kUInt8)), ElementsAre(1, 0, 255, 0, 0));
  EXPECT_THAT(computed(b_.cast(x, DType::kInt32)), ElementsAre(1, -1, 300, INT32_MIN, 0));
}

TEST_F(CpuKernelsMath, ASelectTakesNothingOfTheOther) {
  const Output condition = fed({2}, {0, 1}, DType::kUInt8);
  const Output nan = fed({2}, {std::nan(""), 5}), y = fed({2}, {7, std::nan("")});
  EXPECT_THAT(computed(Output{b_.node("Select", {condition, nan, y})}), ElementsAre(7, 5));
}

// The memory plan may put such operands into one place.
TEST_F(CpuKernelsMath, AResultByElementMayOverwriteAnOperandOfItsShape) {
  const Output x = fed({4}, Values(4)), y = fed({4}, Values(4)), scalar = fed({}, {1});
  const auto add = kernelOf(b_.add(x, y));
  EXPECT_TRUE(add->canOverwrite(0, 0));
  EXPECT_TRUE(add->canOverwrite(0, 1));
  EXPECT_FALSE(kernelOf(b_.add(x, scalar))->canOverwrite(0, 1)) << "it is read again";
  EXPECT_TRUE(kernelOf(b_.relu(x))->canOverwrite(0, 0));
  EXPECT_FALSE(kernelOf(b_.biasAddGrad(fed({2, 2}, Values(4))))->canOverwrite(0, 0));
}

}  // namespace
}  // namespace dtf::runtime::testing
