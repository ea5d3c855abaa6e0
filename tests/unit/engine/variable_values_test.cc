#include "common/engine/variable_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

TEST(VariableValues, AValueStaysAsItIsWhileSomebodyHoldsIt) {
  VariableValues values;
  EXPECT_THAT(graph::testing::errorText([&] { values.get("w"); }),
              ::testing::HasSubstr("'w' has no value yet"));
  const auto first = std::make_shared<const Tensor>(DType::kFloat32, Shape{1});
  values.set("w", first);
  const auto held = values.get("w");
  values.set("w", std::make_shared<const Tensor>(DType::kFloat32, Shape{2}));
  EXPECT_EQ(held, first);
  EXPECT_EQ(values.get("w")->shape(), (Shape{2}));
}

}  // namespace
}  // namespace dtf::engine
