#include "common/engine/byte_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ByteBudget, GivesAllOrNothingAndSaysWhatThereIs) {
  ByteBudget budget(100);
  budget.take(60, "a");
  EXPECT_THAT(graph::testing::errorText([&] { budget.take(41, "b"); }),
              AllOf(HasSubstr("b"), HasSubstr("41 bytes"), HasSubstr("60 of 100")));
  EXPECT_EQ(budget.taken(), 60u);
  EXPECT_THAT(graph::testing::errorText([&] { budget.take(UINT64_MAX, "c"); }), HasSubstr("c"));
  budget.take(40, "b");
  budget.giveBack(60);
  EXPECT_EQ(budget.taken(), 40u);
}

}  // namespace
}  // namespace dtf::engine
