#include "common/shard/straggler_watch.h"

#include <gmock/gmock.h>

#include <string>

namespace dtf::shard {
namespace {

using replication::Phase;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

arena::ModelDeclaration modelOf(cluster::ReplicationSpec::Mode mode, uint32_t needed) {
  arena::ModelDeclaration model;
  model.replication.mode = mode;
  model.replication.replicas_to_aggregate = needed;
  model.replication.total_num_replicas = 2;
  return model;
}

class StragglerWatchTest : public ::testing::Test {
 protected:
  // Makes steps in which both workers report; `slow` needs longer. Returns the log lines.
  std::string steps(int count, std::optional<uint32_t> slow) {
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < count; ++i, ++step_)
      for (uint32_t rank = 0; rank < 2; ++rank) {
        replication::Contribution push;
        push.rank = rank;
        push.step = step_;
        push.times[Phase::kCompute] = milliseconds(20);
        push.times[Phase::kData] = milliseconds(slow == rank ? 15 : 2);
        watch_.note(push, model_);
      }
    return ::testing::internal::GetCapturedStderr();
  }

  ManualClock clock_;
  StragglerWatch watch_{2, clock_};
  arena::ModelDeclaration model_ = modelOf(cluster::ReplicationSpec::Mode::kSync, 2);
  uint64_t step_ = 1;
};

TEST_F(StragglerWatchTest, AChangeIsLoggedOnce) {
  EXPECT_EQ(steps(50, std::nullopt), "");
  const std::string log = steps(50, 1);
  EXPECT_THAT(log, HasSubstr("event=straggler worker=worker/1 phase=data step="));
  EXPECT_THAT(log, HasSubstr("own_ms=35.000 excess_ms=13.000"));
  EXPECT_EQ(log.find("event=straggler"), log.rfind("event=straggler"));
  ASSERT_TRUE(watch_.straggler());
  clock_.advance(std::chrono::seconds(11));
  EXPECT_THAT(steps(50, std::nullopt), HasSubstr("event=straggler_gone worker=worker/1 step="));
  EXPECT_FALSE(watch_.straggler());
}

TEST_F(StragglerWatchTest, ManyChangesDoNotFillTheLog) {
  EXPECT_THAT(steps(50, 1), HasSubstr("event=straggler"));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(steps(50, i % 2), "") << "too soon";
  ASSERT_TRUE(watch_.straggler());
  EXPECT_EQ(watch_.straggler()->rank, 1u);
  clock_.advance(std::chrono::seconds(11));
  EXPECT_EQ(steps(50, 1), "") << "that was logged";
  EXPECT_THAT(steps(50, 0), HasSubstr("worker=worker/0"));
}

TEST_F(StragglerWatchTest, WhereAStepDoesNotWaitForAllNoneIsNamed) {
  for (const auto& model : {modelOf(cluster::ReplicationSpec::Mode::kAsync, 2),
                            modelOf(cluster::ReplicationSpec::Mode::kSync, 1)}) {
    model_ = model;
    EXPECT_EQ(steps(100, 1), "");
    EXPECT_FALSE(watch_.straggler());
  }
}

TEST_F(StragglerWatchTest, WorkersOfAnEarlierVersionReportNothing) {
  for (uint64_t step = 1; step < 20; ++step)
    for (uint32_t rank = 0; rank < 2; ++rank) {
      replication::Contribution push;
      push.rank = rank;
      push.step = step;
      watch_.note(push, model_);
    }
  EXPECT_FALSE(watch_.straggler());
}

}  // namespace
}  // namespace dtf::shard
