#include "tests/unit/runtime/kernel_fixture.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;
using ::testing::ElementsAre;

class CpuMatMul : public KernelTest {};

TEST_F(CpuMatMul, OperandsMayBeStoredTransposed) {
  const Output a = fed({2, 3}, {1, 2, 3, 4, 5, 6}), at = fed({3, 2}, {1, 4, 2, 5, 3, 6});
  const Output b = fed({3, 2}, {1, 0, 0, 1, 2, 2}), bt = fed({2, 3}, {1, 0, 2, 0, 1, 2});
  for (const Output product : {b_.matMul(a, b), b_.matMul(at, b, true),
                               b_.matMul(a, bt, false, true), b_.matMul(at, bt, true, true)})
    EXPECT_THAT(computed(product), ElementsAre(7, 8, 16, 17));
}

TEST_F(CpuMatMul, OverNothingIsZero) {
  EXPECT_THAT(computed(b_.matMul(fed({2, 0}, {}), fed({0, 2}, {}))), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(computed(b_.matMul(fed({0, 3}, {}), fed({3, 2}, Values(6)))), ElementsAre());
}

TEST_F(CpuMatMul, ItsResultIsWrittenBesideItsOperands) {
  const Output square = fed({4, 4}, Values(16)), other = fed({4, 4}, Values(16));
  const auto kernel = kernelOf(b_.matMul(square, other));
  EXPECT_FALSE(kernel->canOverwrite(0, 0));
  EXPECT_FALSE(kernel->canOverwrite(0, 1));
}

}  // namespace
}  // namespace dtf::runtime::testing
