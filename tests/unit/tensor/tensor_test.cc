#include "common/tensor/tensor.h"

#include <gtest/gtest.h>

namespace dtf {

TEST(Tensor, HasItsShapesBytes) {
  Tensor tensor(DType::kFloat32, Shape{2, 3});
  EXPECT_EQ(tensor.bytes(), 24u);
  tensor.as<float>()[5] = 1.5f;
  EXPECT_EQ(tensor.as<float>().back(), 1.5f);
}

TEST(TensorDeathTest, RefusesTheWrongElementType) {
  Tensor tensor(DType::kFloat32, Shape{1});
  EXPECT_DEATH(tensor.as<int32_t>(), "check failed");
}

}  // namespace dtf
