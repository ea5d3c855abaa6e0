#include <cmath>

#include "tests/unit/runtime/kernel_fixture.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CpuKernelsNn : public KernelTest {};

TEST_F(CpuKernelsNn, ASoftmaxOfLargeLogitsStaysFinite) {
  const Values rows = computed(b_.softmax(fed({2, 2}, {1000, 1000, -1000, 1000})));
  EXPECT_THAT(rows, ElementsAre(0.5, 0.5, DoubleNear(0, 1e-37), 1));
}

TEST_F(CpuKernelsNn, ALabelWithoutAClassIsBadData) {
  const Output logits = fed({2, 3}, Values(6));
  EXPECT_THAT(refusal(b_.sparseSoftmaxCrossEntropy(logits, fed({2}, {2, 3}, DType::kInt32)).loss),
              HasSubstr("the label of row 1 is 3, it must be in [0, 3)"));
  EXPECT_THAT(refusal(b_.oneHot(fed({1}, {-1}, DType::kInt64), 3)), HasSubstr("row 0 is -1"));
  EXPECT_EQ(refusal(b_.oneHot(fed({1}, {2}, DType::kInt64), 3)), "");
}

TEST_F(CpuKernelsNn, TheAccuracyIsTheShareOfRowsWhoseLargestLogitIsTheirs) {
  const Output logits = fed({4, 2}, {0, 1, 1, 0, 0, 1, 5, 6});
  const Output labels = fed({4}, {1, 1, 1, 1}, DType::kUInt8);
  EXPECT_THAT(computed(b_.accuracy(logits, labels)), ElementsAre(0.75));
}

TEST_F(CpuKernelsNn, DropoutKeepsAndScalesByItsKeyAlone) {
  const Output x = fed({1000}, Values(1000, 3)), key = fed({2}, {5, 8}, DType::kInt64);
  const Values dropped = computed(b_.dropout(x, key, 0.25, 1));
  EXPECT_EQ(dropped, computed(b_.dropout(x, fed({2}, {5, 8}, DType::kInt64), 0.25, 1)));
  EXPECT_NE(dropped, computed(b_.dropout(x, key, 0.25, 2))) << "another layer";
  for (const double value : dropped) EXPECT_TRUE(value == 0 || value == 4) << value;
  EXPECT_EQ(computed(b_.dropout(x, key, 0, 1)), Values(1000, 3));
}

TEST_F(CpuKernelsNn, ACrossEntropyOfTargetsHasTheGradientOfItsRow) {
  const Output logits = fed({1, 2}, {0, std::log(3.0)}), targets = fed({1, 2}, {0.5, 0.5});
  const auto entropy = b_.softmaxCrossEntropy(logits, targets);
  EXPECT_THAT(computed(entropy.backprop),
              ElementsAre(DoubleNear(-0.25, 1e-6), DoubleNear(0.25, 1e-6)));
}

}  // namespace
}  // namespace dtf::runtime::testing
