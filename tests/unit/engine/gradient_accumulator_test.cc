#include "common/engine/gradient_accumulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::testing::errorText;
using ::testing::HasSubstr;

class GradientAccumulatorTest : public ::testing::Test {
 protected:
  bool apply(int64_t version, int64_t rank, int64_t ticket, int64_t step, int64_t arrived = 0) {
    GradientAccumulator::Gradient gradient;
    gradient.rank = rank;
    gradient.ticket = ticket;
    gradient.step = step;
    gradient.share = accumulator_.shareOf(8);
    return accumulator_.apply(version, std::move(gradient), arrived);
  }

  const std::shared_ptr<ByteBudget> budget_ = ByteBudget::create(40, "ps/0");
  GradientAccumulator accumulator_{"w", budget_};
};

TEST_F(GradientAccumulatorTest, DropsAStaleGradient) {
  EXPECT_TRUE(apply(4, 0, 1, 4));
  EXPECT_FALSE(apply(4, 1, 2, 3));
  EXPECT_EQ(accumulator_.size(), 1u);
  EXPECT_TRUE(apply(5, 1, 3, 5));
  EXPECT_EQ(accumulator_.size(), 1u) << "the gradient of version 4 is gone";
}

TEST_F(GradientAccumulatorTest, GivesThemInTheOrderOfTheTickets) {
  apply(0, 1, 11, 0);
  apply(0, 0, 12, 0);
  const std::vector<int64_t> wanted = {12, 11};
  const auto found = accumulator_.find(wanted);
  EXPECT_EQ(found[0]->rank, 0);
  EXPECT_EQ(found[1]->rank, 1);
  const std::vector<int64_t> missing = {13};
  EXPECT_THAT(errorText([&] { accumulator_.find(missing); }), HasSubstr("lacks a gradient"));
}

TEST_F(GradientAccumulatorTest, AClientThatDiesAgainAndAgainTakesNoMoreMemory) {
  apply(0, 0, 1, 0);
  for (int64_t ticket = 2; ticket < 100; ++ticket) apply(0, 0, ticket, 0, 1);
  EXPECT_EQ(accumulator_.size(), 2u) << "the first has arrived, the last may";
  EXPECT_LE(budget_->taken(), 16u);
}

TEST_F(GradientAccumulatorTest, IsBoundedByTheBudget) {
  for (int64_t rank = 0; rank < 5; ++rank) apply(0, rank, rank + 1, 0);
  EXPECT_THAT(errorText([&] { apply(0, 5, 6, 0); }),
              HasSubstr("a gradient that waits at the variable 'w'"));
  accumulator_.clear();
  EXPECT_EQ(budget_->taken(), 0u);
}

}  // namespace
}  // namespace dtf::engine
