#include "common/replication/barrier.h"

#include <gtest/gtest.h>

#include <string>

#include "common/replication/epoch.h"

namespace dtf::replication {
namespace {

using std::chrono::seconds;

class BarriersTest : public ::testing::Test {
 protected:
  void arrive(const std::string& name, uint32_t rank, std::string& what,
              Arrival arrival = Arrival::kFirst) {
    what = "waits";
    barriers_.arrive(name, rank, arrival, seconds(5), [&what](const WaitAnswer& answer) {
      const Error* error = std::get_if<Error>(&answer);
      what = error == nullptr ? "passed" : error->message();
    });
  }
  ManualClock clock_;
  OutwardCalls calls_;
  Barriers barriers_{3, calls_, clock_};
  std::string a_, b_, c_;
};

TEST_F(BarriersTest, OpensWhenTheLastArrives) {
  arrive("x", 0, a_);
  arrive("x", 2, b_);
  EXPECT_EQ(a_, "waits");
  EXPECT_EQ(barriers_.waiting(), 2u);
  arrive("x", 1, c_);
  EXPECT_EQ(a_ + b_ + c_, "passedpassedpassed");
  EXPECT_EQ(barriers_.waiting(), 0u);
}

TEST_F(BarriersTest, ARestartedWorkerPassesABarrierThatIsOpen) {
  for (uint32_t rank = 0; rank < 3; ++rank) arrive("x", rank, a_);
  arrive("x", 1, b_);
  EXPECT_EQ(b_, "passed");
}

// This ps was started after all workers had passed the barrier.
TEST_F(BarriersTest, OneThatPassedBeforeIsBehindAnOpenBarrier) {
  arrive("x", 1, a_);
  arrive("x", 0, b_, Arrival::kPassedBefore);
  EXPECT_EQ(a_ + b_, "passedpassed");
  arrive("x", 1, c_, Arrival::kPassedBefore);
  EXPECT_EQ(c_, "passed");
  arrive("y", 0, c_);
  EXPECT_EQ(c_, "waits") << "of another it says nothing";
}

TEST_F(BarriersTest, WhoeverWaitsForTheEndOfAnEpochThatIsLeftIsNeededAgain) {
  constexpr uint64_t kSecond = nextEpoch(kFirstEpoch, 9);
  barriers_.beginEpoch(kFirstEpoch);
  std::string start, second;
  arrive(trainedBarrier(kFirstEpoch), 0, a_);
  arrive(savedBarrier(kFirstEpoch), 2, b_);
  arrive(trainedBarrier(kSecond), 2, second);
  arrive("start", 2, start);
  barriers_.beginEpoch(kSecond);
  EXPECT_EQ(a_, "passed");
  EXPECT_EQ(b_, "passed");
  EXPECT_EQ(second, "waits");
  EXPECT_EQ(start, "waits");
  arrive(trainedBarrier(kFirstEpoch), 1, c_);
  EXPECT_EQ(c_, "passed") << "it comes late to the epoch before";
  EXPECT_EQ(trainedBarrier(kSecond), "trained.2");
}

TEST_F(BarriersTest, NamesWhoIsMissingWhenTimeIsUp) {
  arrive("end", 0, a_);
  clock_.advance(seconds(6));
  barriers_.tick();
  EXPECT_EQ(a_.substr(0, a_.find(';')),
            "worker/0 waited 5 s at barrier 'end' for worker/1, worker/2");
  arrive("end", 1, b_);
  arrive("end", 2, c_);
  EXPECT_EQ(b_, "waits") << "whoever gave up has not arrived";
}

TEST_F(BarriersTest, DoesNotWaitForFinishedWorkers) {
  arrive("x", 0, a_);
  barriers_.left(1);
  EXPECT_EQ(a_, "waits");
  barriers_.left(2);
  EXPECT_EQ(a_, "passed");
}

TEST_F(BarriersTest, ASecondArrivalTakesOverTheWait) {
  arrive("x", 0, a_);
  arrive("x", 0, b_);
  EXPECT_NE(a_.find("gave way"), std::string::npos) << a_;
  EXPECT_EQ(b_, "waits");
}

TEST_F(BarriersTest, RefusesBadNamesAndTooManyOfThem) {
  arrive("", 0, a_);
  EXPECT_NE(a_.find("name"), std::string::npos);
  arrive(std::string(kBarrierNameBytesMax + 1, 'x'), 0, a_);
  EXPECT_NE(a_.find("name"), std::string::npos);
  for (size_t i = 0; i < kBarriersMax; ++i) arrive(std::to_string(i), 0, a_);
  arrive("one more", 0, b_);
  EXPECT_NE(b_.find("4096"), std::string::npos) << b_;
}

}  // namespace
}  // namespace dtf::replication
