#include "launcher/exchange_comparison.h"

#include <gtest/gtest.h>

namespace dtf::launcher {
namespace {

TEST(ExchangeComparison, LeavesOutTheBatchesThatWaitForOtherWorkers) {
  ExchangeComparison exchanges(0.002);
  EXPECT_FALSE(exchanges.add(0, 0));
  EXPECT_FALSE(exchanges.add(1, 5.0)) << "it waited for the others to start";
  EXPECT_FALSE(exchanges.add(20, 5.04));
  const auto seconds = exchanges.add(31, 5.09);
  ASSERT_TRUE(seconds);
  EXPECT_NEAR(*seconds, 0.003, 1e-9);
  EXPECT_FALSE(exchanges.add(90, 9.0)) << "once";
}

TEST(ExchangeComparison, BeginsAgainWithAnotherProcessOfTheChief) {
  ExchangeComparison exchanges(0.002);
  exchanges.add(10, 1.0);
  EXPECT_FALSE(exchanges.add(2, 4.0));
  EXPECT_FALSE(exchanges.add(21, 4.1));
  EXPECT_NEAR(exchanges.add(22, 4.2).value(), 0.01, 1e-9);
}

TEST(ExchangeComparison, NeedsAPrediction) {
  ExchangeComparison exchanges(0);
  exchanges.add(1, 1);
  EXPECT_FALSE(exchanges.add(100, 2));
}

}  // namespace
}  // namespace dtf::launcher
