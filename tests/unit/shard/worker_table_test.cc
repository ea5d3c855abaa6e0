#include "common/shard/worker_table.h"

#include <gtest/gtest.h>

#include <chrono>

namespace dtf::shard {
namespace {

using std::chrono::seconds;

constexpr Incarnation kProcess{1};
constexpr Incarnation kSuccessor{2};
constexpr Duration kLease = seconds(10);
constexpr Duration kEvaluationMax = seconds(30);

class WorkerTableTest : public ::testing::Test {
 protected:
  WorkerTableTest() { table_.join(1, kProcess); }
  ManualClock clock_;
  WorkerTable table_{3, kLease, kEvaluationMax, clock_};
};

TEST_F(WorkerTableTest, ANewProcessBeginsWithoutNotes) {
  table_.notes(1) = {.has_declared = true,
                     .refused = Error(ErrorCode::kBadConfig, "another model"),
                     .has_trained = true,
                     .evaluates_since = clock_.now()};
  EXPECT_FALSE(table_.join(1, kProcess)) << "it has joined already";
  EXPECT_TRUE(table_.notes(1).has_declared);
  EXPECT_TRUE(table_.join(1, kSuccessor));
  EXPECT_FALSE(table_.notes(1).has_declared);
  EXPECT_FALSE(table_.notes(1).refused);
  EXPECT_FALSE(table_.notes(1).has_trained);
  EXPECT_FALSE(table_.notes(1).evaluates_since);
}

TEST_F(WorkerTableTest, AProcessThatCantMakeCallsHasAnError) {
  EXPECT_FALSE(table_.errorOf(1, kProcess));
  EXPECT_EQ(table_.errorOf(0, kProcess).value().code(), ErrorCode::kPermission) << "not joined";
  EXPECT_EQ(table_.errorOf(3, kProcess).value().code(), ErrorCode::kBadConfig) << "no such rank";
  table_.notes(1).refused = Error(ErrorCode::kBadConfig, "another model");
  EXPECT_EQ(table_.errorOf(1, kProcess).value().message(), "another model");
  table_.join(1, kSuccessor);
  EXPECT_EQ(table_.errorOf(1, kProcess).value().code(), ErrorCode::kUnavailable) << "replaced";
}

TEST_F(WorkerTableTest, OnlyAPresentWorkerTrains) {
  EXPECT_FALSE(table_.anybodyTrains());
  table_.notes(1).has_trained = true;
  EXPECT_TRUE(table_.anybodyTrains());
  table_.membership().markLost(1);
  EXPECT_FALSE(table_.anybodyTrains());
}

TEST_F(WorkerTableTest, AnEvaluationCountsForALimitedTime) {
  EXPECT_FALSE(table_.whoEvaluates());
  table_.heartbeat(1, kProcess, true);
  clock_.advance(kEvaluationMax - Duration(1));
  table_.heartbeat(1, kProcess, true);
  EXPECT_EQ(table_.whoEvaluates(), 1u) << "since the first heartbeat that says so";
  clock_.advance(Duration(1));
  EXPECT_FALSE(table_.whoEvaluates());
  table_.heartbeat(1, kProcess, false);
  table_.heartbeat(1, kProcess, true);
  EXPECT_EQ(table_.whoEvaluates(), 1u) << "another evaluation";
}

TEST_F(WorkerTableTest, HasTheStateOfEachWorker) {
  EXPECT_TRUE(table_.isPresent(1));
  EXPECT_TRUE(table_.isIn(0, replication::MemberState::kAwaited));
  EXPECT_FALSE(table_.hasFinished(1));
  table_.membership().finish(1, kProcess);
  EXPECT_TRUE(table_.hasFinished(1));
  EXPECT_EQ(table_.size(), 3u);
}

}  // namespace
}  // namespace dtf::shard
