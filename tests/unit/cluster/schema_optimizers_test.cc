// The tables of train.optimizer.

#include <gtest/gtest.h>

#include "common/cluster/schema.h"

namespace dtf::cluster {

using yaml::Key;

namespace {

TEST(SchemaOptimizers, NumberBoundsAreOpenWhereTheySaySo) {
  const Key& rate = schema::kAdam.at("learning_rate");
  EXPECT_FALSE(rate.inRange(0.0));
  EXPECT_TRUE(rate.inRange(1e-9));
  EXPECT_EQ(rate.rangeText(), "more than 0 and at most 1000000");
  const Key& beta = schema::kAdam.at("beta1");
  EXPECT_TRUE(beta.inRange(0.0));
  EXPECT_FALSE(beta.inRange(1.0));
}

}  // namespace
}  // namespace dtf::cluster
