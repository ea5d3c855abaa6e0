#include "tests/unit/runtime/kernel_fixture.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;

class CpuKernelsRandom : public KernelTest {};

TEST_F(CpuKernelsRandom, NumbersFollowFromSeedAndStreamAlone) {
  const auto drawn = [&](double step, int64_t stream) {
    return computed(b_.randomUniform(fed({2}, {7, step}, DType::kInt64), {99}, stream));
  };
  const Values once = drawn(1, 0);
  EXPECT_EQ(once, drawn(1, 0));
  EXPECT_NE(once, drawn(2, 0));
  EXPECT_NE(once, drawn(1, 1));
  for (const double value : once) EXPECT_TRUE(0 <= value && value < 1) << value;
}

// An element depends on its place, not on the number of elements.
TEST_F(CpuKernelsRandom, AShorterTensorIsTheBeginningOfALongerOne) {
  const Output seed = fed({2}, {7, 3}, DType::kInt64);
  for (const bool normal : {false, true}) {
    const auto drawn = [&](int64_t n) {
      return computed(normal ? b_.randomNormal(seed, {n}) : b_.randomUniform(seed, {n}));
    };
    const Values longer = drawn(1003);
    for (const int64_t n : {1, 2, 5, 64})
      EXPECT_EQ(drawn(n), Values(longer.begin(), longer.begin() + n)) << n;
  }
}

TEST_F(CpuKernelsRandom, AreThoseOfTheReference) {
  const Output seed = fed({2}, {11, 1234567890123}, DType::kInt64);
  for (const Output output : {b_.randomUniform(seed, {50}, 3), b_.randomNormal(seed, {50}, 3)})
    expectNear(computed(output), graph::testing::evaluate(graph_, feeds_, output), 1e-5);
}

}  // namespace
}  // namespace dtf::runtime::testing
