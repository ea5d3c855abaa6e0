#include "common/exchange/local_exchange_client.h"
#include "common/replication/epoch.h"

#include "tests/conformance/async_hammer_suite.h"
#include "tests/conformance/bounded_suite.h"
#include "tests/conformance/overlap_suite.h"
#include "tests/conformance/sparse_rows_suite.h"

namespace dtf::exchange {

namespace {

class LocalHarness final : public ClusterHarness {
 public:
  LocalHarness(uint32_t ps_tasks, uint32_t workers) : cluster_(ps_tasks, workers, clock_) {}
  std::unique_ptr<ExchangeClient> connect(uint32_t rank) override {
    return std::make_unique<LocalExchangeClient>(cluster_, rank);
  }
  void loseWorker(uint32_t rank) override { cluster_.loseWorker(rank); }
  replication::StalenessHistogram staleness() override {
    return cluster_.status(0).coordinator.staleness;
  }

 private:
  SystemClock clock_;
  LocalCluster cluster_;
};

std::unique_ptr<ClusterHarness> makeLocalHarness(uint32_t ps_tasks, uint32_t workers) {
  return std::make_unique<LocalHarness>(ps_tasks, workers);
}

INSTANTIATE_TEST_SUITE_P(Local, ExchangeClientSuite, ::testing::Values(&makeLocalHarness));
INSTANTIATE_TEST_SUITE_P(Local, AsyncHammerSuite, ::testing::Values(&makeLocalHarness));
INSTANTIATE_TEST_SUITE_P(Local, BoundedSuite, ::testing::Values(&makeLocalHarness));
INSTANTIATE_TEST_SUITE_P(Local, OverlapSuite, ::testing::Values(&makeLocalHarness));
INSTANTIATE_TEST_SUITE_P(Local, SparseRowsSuite, ::testing::Values(&makeLocalHarness));

TEST(LocalCluster, GivesUpOnAWorkerThatNeverComes) {
  SystemClock clock;
  LocalCluster cluster(1, 2, clock, std::chrono::milliseconds(20));
  LocalExchangeClient client(cluster, 0);
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"v", Shape{}, {{0, 0, 1}}}}, 1);
  model.steps = 1;
  client.declare(model);
  try {
    client.barrier("start");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadline);
  }
}

TEST(LocalCluster, CountsStalenessInAHistogram) {
  SystemClock clock;
  LocalCluster cluster(1, 2, clock);
  LocalExchangeClient slow(cluster, 0);
  LocalExchangeClient fast(cluster, 1);
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"v", Shape{}, {{0, 0, 1}}}}, 1);
  model.steps = 10;
  slow.declare(model);
  fast.declare(model);
  const std::vector<float> zeros(16);
  const std::vector<std::span<const float>> values = {zeros};
  slow.initialise(values, replication::kFirstEpoch);
  const replication::StepState start = slow.pull();
  replication::StepState state = fast.pull();
  for (int i = 0; i < 3; ++i) state = pushPull(fast, state.next_step, 0, 0);
  EXPECT_EQ(state.staleness, 0u);
  EXPECT_EQ(pushPull(slow, start.next_step, 0, 0).staleness, 3u);
  const replication::StalenessHistogram histogram = cluster.status(0).coordinator.staleness;
  EXPECT_EQ(histogram.counts[0], 3u);
  EXPECT_EQ(histogram.counts[3], 1u);
  EXPECT_EQ(histogram.max, 3u);
}

}  // namespace

}  // namespace dtf::exchange
