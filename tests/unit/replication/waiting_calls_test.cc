#include "common/replication/waiting_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace dtf::replication {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Duration kTimeout = std::chrono::seconds(10);
const Error kGaveWay(ErrorCode::kUnavailable, "gave way");

class WaitingCallsTest : public ::testing::Test {
 protected:
  using Calls = WaitingCalls<WaitAnswer, int>;

  void add(uint32_t rank, Duration timeout = kTimeout, int detail = 0) {
    const OutwardCalls::Scope scope(calls_);
    waiting_.add(rank, timeout, recorder(rank), kGaveWay, detail);
  }
  WaitCallback recorder(uint32_t rank) {
    return [this, rank](const WaitAnswer& answer) {
      const Error* error = std::get_if<Error>(&answer);
      answers_.push_back(std::to_string(rank) + ": " +
                         (error == nullptr ? "arrived" : error->message()));
    };
  }
  void expire() {
    const OutwardCalls::Scope scope(calls_);
    waiting_.expire([](const Calls::Call& call) {
      return Error(ErrorCode::kDeadline, "late, detail " + std::to_string(call.detail));
    });
  }
  void advance(Duration by) { clock_.advance(by); }

  ManualClock clock_;
  OutwardCalls calls_;
  Calls waiting_{calls_, clock_};
  std::vector<std::string> answers_;
};

TEST_F(WaitingCallsTest, ACallIsAnsweredOnce) {
  add(1);
  EXPECT_TRUE(waiting_.waits(1));
  EXPECT_FALSE(waiting_.waits(0));
  {
    const OutwardCalls::Scope scope(calls_);
    waiting_.answer(1, Arrived{});
    EXPECT_THAT(answers_, IsEmpty()) << "never from the middle of a method";
    waiting_.answer(1, Arrived{});
    waiting_.answer(0, Arrived{});
  }
  EXPECT_THAT(answers_, ElementsAre("1: arrived"));
  EXPECT_TRUE(waiting_.empty());
}

TEST_F(WaitingCallsTest, AnEarlierCallOfTheWorkerGivesWay) {
  add(1, kTimeout, 1);
  add(1, kTimeout, 2);
  EXPECT_THAT(answers_, ElementsAre("1: gave way"));
  EXPECT_EQ(waiting_.size(), 1u);
  EXPECT_EQ(waiting_.find(1)->detail, 2);
}

TEST_F(WaitingCallsTest, AllAreAnsweredInTheOrderInWhichTheyCame) {
  add(2);
  add(0);
  add(1);
  add(0);  // again: it is the last now
  answers_.clear();
  {
    const OutwardCalls::Scope scope(calls_);
    waiting_.answerAll(Arrived{});
  }
  EXPECT_THAT(answers_, ElementsAre("2: arrived", "1: arrived", "0: arrived"));
}

TEST_F(WaitingCallsTest, ACallExpiresAtItsDeadline) {
  add(0, kTimeout, 7);
  add(1, 2 * kTimeout);
  add(2, Duration::max());
  advance(kTimeout - Duration(1));
  expire();
  EXPECT_THAT(answers_, IsEmpty());
  advance(Duration(1));
  expire();
  EXPECT_THAT(answers_, ElementsAre("0: late, detail 7"));
  advance(std::chrono::hours(24));
  expire();
  EXPECT_THAT(answers_, ElementsAre("0: late, detail 7", "1: late, detail 0"));
  EXPECT_TRUE(waiting_.waits(2)) << "it has no deadline";
}

TEST_F(WaitingCallsTest, TheTimeStartsAgain) {
  add(0);
  add(1);
  advance(kTimeout / 2);
  waiting_.restart();
  advance(kTimeout / 2);
  expire();
  EXPECT_THAT(answers_, IsEmpty());
  waiting_.restart(1);
  waiting_.restart(5);  // none waits
  advance(kTimeout / 2);
  expire();
  EXPECT_THAT(answers_, ElementsAre("0: late, detail 0"));
}

TEST_F(WaitingCallsTest, TheTimeStartsAgainWithinABound) {
  constexpr Duration kMost = kTimeout + kTimeout / 2;
  add(0);
  advance(kTimeout - Duration(1));
  waiting_.restartWithin(kMost);
  EXPECT_EQ(waiting_.find(0)->deadline, waiting_.find(0)->since + kMost);
  waiting_.restartWithin(kTimeout / 4);
  EXPECT_EQ(waiting_.find(0)->deadline, waiting_.find(0)->since + kMost)
      << "a deadline never comes nearer";
}

TEST_F(WaitingCallsTest, ACarriedCallKeepsItsDeadline) {
  add(1);
  add(0);
  advance(kTimeout / 2);
  std::vector<Calls::Call> taken = waiting_.takeAll();
  EXPECT_TRUE(waiting_.empty());
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].rank, 1u);
  waiting_.putBack(std::move(taken[0]));
  advance(kTimeout / 2);
  expire();
  EXPECT_THAT(answers_, ElementsAre("1: late, detail 0"));
  taken[1].callback(Arrived{});
  EXPECT_EQ(answers_.back(), "0: arrived");
}

TEST_F(WaitingCallsTest, OnlyALongWaitIsReported) {
  add(1);
  advance(kSaidAfter);
  EXPECT_EQ(waiting_.longWait(), nullptr);
  add(0);
  advance(Duration(1));
  ASSERT_NE(waiting_.longWait(), nullptr);
  EXPECT_EQ(waiting_.longWait()->rank, 1u);
  waiting_.restart();
  EXPECT_EQ(waiting_.longWait(), nullptr);
  add(1, Duration::max());
  advance(kTimeout / 2);
  EXPECT_EQ(waiting_.longWait()->rank, 0u) << "the other has no deadline";
}

TEST_F(WaitingCallsTest, CallsThatStillWaitAreDroppedAtTheEnd) {
  {
    Calls gone(calls_, clock_);
    gone.add(0, kTimeout, recorder(0), kGaveWay);
  }
  EXPECT_THAT(answers_, IsEmpty());
}

}  // namespace
}  // namespace dtf::replication
