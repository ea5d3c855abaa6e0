// replication.overlap: a worker computes its next batch while a gradient travels. Real processes,
// real kill -9.

#include <fmt/core.h>

#include <algorithm>

#include "common/base/json.h"
#include "tests/e2e/recovery_fixture.h"
#include "tests/e2e/timeline.h"

namespace dtf::testing {
namespace {

class OverlapTest : public RecoveryTest {
 protected:
  static ClusterOptions overlapped(int workers) {
    ClusterOptions options;
    options.workers = workers;
    options.replication_more = ", overlap: true";
    return options;
  }
};

TEST_F(OverlapTest, AJobOfOneWorkerRepeatsToTheBitAndIsNotThatOfOneThatWaits) {
  for (const std::string name : {"first", "again"})
    ASSERT_EQ(launch(writeCluster(overlapped(1), name)).exit_code, 0);
  ClusterOptions waits = overlapped(1);
  waits.replication_more.clear();
  ASSERT_EQ(launch(writeCluster(waits, "waits")).exit_code, 0);
  EXPECT_EQ(summary("first")["global_step"], 40);
  EXPECT_EQ(digestOf("again"), digestOf("first"));
  EXPECT_NE(digestOf("waits"), digestOf("first")) << "each gradient lacks the one before";
  expectNothingLeft();
}

// The timeline shows the exchange and the next batch side by side.
TEST_F(OverlapTest, TheExchangeAndTheNextBatchAreAtTheSameTime) {
  ClusterOptions options = overlapped(1);
  options.batch_size = 200;
  options.layers =
      "[flatten: , dense: {units: 1024, activation: relu}, dense: {units: 1024, activation: relu}, "
      "dense: {units: 10}]";
  options.top_more = "shared_memory: false\n";  // where an exchange takes a while
  options.train_more = "  summaries: {timeline_step: 20}\n";
  ASSERT_EQ(launch(writeCluster(options)).exit_code, 0);
  const auto timeline = Json::parse(folder_.read("runs/job/timeline/worker-0.json"));
  const std::vector<Span> exchanges = spansOf(timeline, "push, wait, receive");
  const std::vector<Span> batches = spansOf(timeline, "compute");
  ASSERT_EQ(exchanges.size(), 1u) << timeline;
  const auto is_beside = [&](const Span& batch) {
    return batch.begin < exchanges[0].end && exchanges[0].begin < batch.end;
  };
  EXPECT_TRUE(std::ranges::any_of(batches, is_beside)) << timeline;
}

TEST_F(OverlapTest, LostWorkersAndAPsAreReplacedAndAllStepsAreDone) {
  expectLossesToCostTimeAlone(overlapped(2));
}

}  // namespace
}  // namespace dtf::testing
