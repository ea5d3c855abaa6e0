#include "common/replication/membership.h"

#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::replication {
namespace {

using std::chrono::seconds;

constexpr Incarnation kFirst{1};
constexpr Incarnation kSecond{2};

std::string errorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

class MembershipTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  Membership membership_{3, seconds(10), clock_};
};

TEST_F(MembershipTest, SaysWhoIsAwaitedSinceWhen) {
  membership_.join(1, kFirst);
  clock_.advance(std::chrono::milliseconds(3200));
  EXPECT_EQ(membership_.missingText(),
            "worker/0 (awaited for 3.2 s), worker/2 (awaited for 3.2 s)");
  membership_.join(0, kFirst);
  membership_.join(2, kFirst);
  EXPECT_EQ(membership_.missingText(), "");
}

TEST_F(MembershipTest, HeartbeatsKeepALeaseAndSilenceLosesIt) {
  membership_.join(0, kFirst);
  membership_.join(1, kFirst);
  clock_.advance(seconds(8));
  membership_.heartbeat(0, kFirst);
  clock_.advance(seconds(8));
  const std::vector<Membership::Loss> losses = membership_.expire();
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].rank, 1u);
  EXPECT_EQ(losses[0].why, "worker/1 was lost (no heartbeat for 10 s)");
  EXPECT_EQ(membership_.member(1).state, MemberState::kLost);
  EXPECT_TRUE(membership_.expire().empty()) << "a loss is told once";
}

// The hello of the first process was under way while that was killed and its successor joined.
TEST_F(MembershipTest, AnEarlierAttemptNeverReplacesALaterOne) {
  const Incarnation first = Incarnation::ofNow(1);
  const Incarnation second = Incarnation::ofNow(2);
  membership_.join(1, second);
  EXPECT_EQ(errorOf([&] { membership_.join(1, first); }),
            "fenced: worker/1 was replaced by a newer process; end this one");
  EXPECT_FALSE(membership_.join(1, second)) << "it is the live one still";
  EXPECT_NE(errorOf([&] { membership_.heartbeat(1, first); }), "");
  membership_.markLost(1);
  EXPECT_NE(errorOf([&] { membership_.join(1, first); }), "") << "though the later one is lost";
  EXPECT_TRUE(membership_.join(1, Incarnation::ofNow(3)));
}

// The first process slept while its successor joined; this ps started in between, and never met the
// first.
TEST_F(MembershipTest, WhereNobodyCountsAnEarlierProcessDoesNotReplaceALiveLaterOne) {
  const Incarnation first = Incarnation::of(0, 100, 9);
  const Incarnation second = Incarnation::of(0, 200, 1);
  membership_.join(1, second);
  EXPECT_EQ(errorOf([&] { membership_.join(1, first); }),
            "fenced: worker/1 was replaced by a newer process, by the time of day; end this one, "
            "or if the clock was set back, start it again in 10 s");
  EXPECT_FALSE(membership_.join(1, second)) << "it is the live one still";
}

// The host's clock was set back between the two processes.
TEST_F(MembershipTest, WhereNobodyCountsOnlyTheLeaseIsLostToAClockThatWasSetBack) {
  const Incarnation first = Incarnation::of(0, 200, 9);
  const Incarnation second = Incarnation::of(0, 100, 1);
  membership_.join(1, first);
  EXPECT_NE(errorOf([&] { membership_.join(1, second); }), "");
  clock_.advance(seconds(11));
  membership_.expire();
  EXPECT_TRUE(membership_.join(1, second));
}

TEST_F(MembershipTest, WhoIsAwaitedInVainIsGivenUpAndMayComeStill) {
  membership_.giveUp(1);
  EXPECT_EQ(membership_.member(1).state, MemberState::kLost);
  EXPECT_TRUE(membership_.join(1, kFirst));
  membership_.giveUp(1);
  EXPECT_EQ(membership_.member(1).state, MemberState::kJoined) << "it is there";
}

// The predecessor has finished on this ps, and died before it had finished on another one.
TEST_F(MembershipTest, AClockThatWasSetBackDoesNotKeepTheSuccessorOfWhoFinishedOut) {
  const Incarnation first = Incarnation::of(0, 200, 9);
  membership_.join(1, first);
  membership_.finish(1, first);
  EXPECT_TRUE(membership_.join(1, Incarnation::of(0, 100, 1)));
}

TEST_F(MembershipTest, ALostProcessIsFencedThoughItComesBackToLife) {
  membership_.join(1, kFirst);
  clock_.advance(seconds(11));
  membership_.expire();
  EXPECT_EQ(errorOf([&] { membership_.heartbeat(1, kFirst); }),
            "fenced: worker/1 was declared lost (its lease is 10 s); start it again");
  EXPECT_NE(errorOf([&] { membership_.join(1, kFirst); }), "");
  EXPECT_TRUE(membership_.join(1, kSecond));
  membership_.heartbeat(1, kSecond);
}

TEST_F(MembershipTest, ANewerProcessReplacesTheOneBeforeWithinItsLease) {
  EXPECT_TRUE(membership_.join(1, kFirst));
  EXPECT_FALSE(membership_.join(1, kFirst)) << "the same process again";
  EXPECT_TRUE(membership_.join(1, kSecond));
  EXPECT_EQ(errorOf([&] { membership_.check(1, kFirst); }),
            "fenced: worker/1 was replaced by a newer process; end this one");
  EXPECT_NE(errorOf([&] { membership_.join(1, kFirst); }), "") << "an old process can't take over";
  membership_.check(1, kSecond);
}

TEST_F(MembershipTest, StrangersAreRefused) {
  EXPECT_NE(errorOf([&] { membership_.join(3, kFirst); }).find("worker/3 is not part of this job"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { membership_.check(0, kFirst); }).find("has not joined"),
            std::string::npos);
}

TEST_F(MembershipTest, FinishedWorkersNeedNoLease) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_FALSE(membership_.allFinished());
    membership_.join(rank, kFirst);
    membership_.finish(rank, kFirst);
    membership_.finish(rank, kFirst);
  }
  EXPECT_TRUE(membership_.allFinished());
  clock_.advance(seconds(100));
  EXPECT_TRUE(membership_.expire().empty());
}

TEST_F(MembershipTest, ALeaseMayBeEndless) {
  Membership endless(1, Duration::max(), clock_);
  endless.join(0, kFirst);
  clock_.advance(std::chrono::hours(24 * 365));
  EXPECT_TRUE(endless.expire().empty());
}

}  // namespace
}  // namespace dtf::replication
