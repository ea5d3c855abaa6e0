#include "common/tensor/dtype.h"

#include <gtest/gtest.h>

namespace dtf {

TEST(DType, SizesAndNames) {
  EXPECT_EQ(dtypeBytes(DType::kFloat32), 4u);
  EXPECT_EQ(dtypeBytes(DType::kUInt8), 1u);
  EXPECT_EQ(dtypeBytes(DType::kInt32), 4u);
  EXPECT_EQ(dtypeBytes(DType::kInt64), 8u);
  EXPECT_EQ(dtypeName(DType::kInt32), "int32");
}

}  // namespace dtf
