#include "common/replication/gone_workers.h"

#include <gtest/gtest.h>

namespace dtf::replication {
namespace {

using std::chrono::seconds;

class GoneWorkersTest : public ::testing::Test {
 protected:
  static bool nobody(uint32_t) { return false; }

  ManualClock clock_;
  GoneWorkers all_{3, 3, clock_};      // a step needs all three
  GoneWorkers backups_{3, 2, clock_};  // two of three
};

TEST_F(GoneWorkersTest, AWorkerThatIsNeededIsAwaitedUntilItsTimeHasPassed) {
  all_.gone(1, "worker/1 was lost", seconds(30));
  clock_.advance(seconds(29));
  EXPECT_EQ(all_.awaited(nobody), std::vector<uint32_t>{1});
  EXPECT_EQ(all_.hopelessFor(0, nobody), std::nullopt);
  clock_.advance(seconds(1));
  EXPECT_TRUE(all_.awaited(nobody).empty());
  EXPECT_EQ(all_.hopelessFor(0, nobody), "worker/1 was lost, and did not return within 30 s,");
}

TEST_F(GoneWorkersTest, WithoutPatienceItIsGivenUpAtOnce) {
  all_.gone(1, "worker/1 finished", seconds(0));
  EXPECT_TRUE(all_.awaited(nobody).empty());
  EXPECT_EQ(all_.hopelessFor(0, nobody), "worker/1 finished");
}

TEST_F(GoneWorkersTest, WhoReturnsIsNeitherAwaitedNorGivenUp) {
  all_.gone(1, "worker/1 was lost", seconds(30));
  all_.joined(1);
  clock_.advance(seconds(31));
  EXPECT_TRUE(all_.awaited(nobody).empty());
  EXPECT_EQ(all_.hopelessFor(0, nobody), std::nullopt);
}

TEST_F(GoneWorkersTest, WhoIsBackIsAwaitedUntilItTrains) {
  all_.gone(1, "worker/1 was lost", seconds(30));
  all_.joined(1);
  EXPECT_EQ(all_.awaited(nobody), std::vector<uint32_t>{1});
  clock_.advance(seconds(31));
  EXPECT_TRUE(all_.awaited(nobody).empty()) << "but not for ever";
  EXPECT_EQ(all_.hopelessFor(0, nobody), std::nullopt);
  all_.gone(1, "worker/1 was lost", seconds(30));
  all_.joined(1);
  all_.arrived(1);
  EXPECT_TRUE(all_.awaited(nobody).empty());
}

TEST_F(GoneWorkersTest, NobodyMissesWhomTheStepDoesNotNeed) {
  backups_.gone(1, "worker/1 was lost", seconds(30));
  EXPECT_TRUE(backups_.awaited(nobody).empty()) << "two are left";
  EXPECT_TRUE(all_.awaited(nobody).empty());
  all_.gone(2, "worker/2 was lost", seconds(30));
  EXPECT_TRUE(all_.awaited([](uint32_t rank) { return rank == 2; }).empty())
      << "its gradient is there";
}

TEST_F(GoneWorkersTest, WhoJoinsAfterALossWaitsForTheReturnHoweverLongItTakes) {
  all_.gone(1, "worker/1 was lost", seconds(0));
  all_.joined(0);
  EXPECT_EQ(all_.hopelessFor(0, nobody), std::nullopt) << "the whole job is starting again";
  EXPECT_NE(all_.hopelessFor(2, nobody), std::nullopt);
}

}  // namespace
}  // namespace dtf::replication
