#include "common/base/byte_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "common/base/error.h"

namespace dtf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ByteBudget, WhatIsHeldIsTakenUntilItsHolderEnds) {
  const auto budget = ByteBudget::create(100, "worker/1");
  auto first = budget->tryTake(60);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bytes(), 60u);
  EXPECT_FALSE(budget->tryTake(41));
  ByteBudget::Share moved = *std::move(first);
  first.reset();
  EXPECT_EQ(budget->taken(), 60u);
  ByteBudget::Share second = budget->take(40, "the rest");
  EXPECT_EQ(budget->taken(), 100u);
  second = std::move(moved);
  EXPECT_EQ(budget->taken(), 60u) << "what it held before is free";
  second = {};
  EXPECT_EQ(budget->taken(), 0u);
}

TEST(ByteBudget, ARefusalSaysWhatIsTaken) {
  const auto budget = ByteBudget::create(1 << 20, "worker/1");
  const auto held = budget->take(1 << 10, "a");
  try {
    budget->take(UINT64_MAX, "the value of 'w'");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("worker/1 has no room for the value of 'w'"),
                                       HasSubstr("1.0 KiB of 1.0 MiB are taken"),
                                       HasSubstr("close other sessions")));
  }
}

TEST(ByteBudget, OneWhoCantBeRefusedInTimePassesTheBound) {
  const auto budget = ByteBudget::create(100, "worker/1");
  auto most = budget->take(100, "most of it");
  budget->refuseIfPassed(0, "a");
  auto received = budget->takeUnlessPassed(50);
  ASSERT_TRUE(received) << "the bound was reached, and not passed";
  EXPECT_FALSE(budget->takeUnlessPassed(0));
  EXPECT_FALSE(budget->tryTake(1));
  EXPECT_THROW(budget->refuseIfPassed(50, "a"), Error);
  most = {};
  EXPECT_TRUE(budget->tryTake(50));
}

TEST(ByteBudget, SharesOutliveWhoMadeItAndEndInAnyThread) {
  auto budget = ByteBudget::create(1000, "worker/1");
  std::vector<ByteBudget::Share> shares;
  for (int i = 0; i < 10; ++i) shares.push_back(budget->take(100, "a"));
  const std::weak_ptr<ByteBudget> watched = budget;
  budget.reset();
  std::vector<std::thread> threads;
  for (ByteBudget::Share& share : shares)
    threads.emplace_back([held = std::move(share)]() mutable { held = {}; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace dtf
