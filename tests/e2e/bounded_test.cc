// replication.mode: bounded. Real processes, real kill -9 and SIGSTOP.

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {
namespace {

using std::chrono::seconds;

class BoundedTest : public RecoveryTest {
 protected:
  static ClusterOptions bounded(const std::string& staleness) {
    ClusterOptions options;
    options.mode = "bounded";
    options.replication_more = ", staleness: " + staleness;
    return options;
  }

  size_t waitsOfChief() {
    const std::string log = workers_[0]->err(), waits = "event=waiting for=\"worker/1";
    size_t count = 0;
    for (size_t at = log.find(waits); at != std::string::npos; at = log.find(waits, at + 1))
      ++count;
    return count;
  }

  // Whether the chief gets to `step` within that time.
  bool gets(int step, std::chrono::steady_clock::duration within) {
    const auto end = std::chrono::steady_clock::now() + within;
    while (lastStep() < step && std::chrono::steady_clock::now() < end) ::usleep(5'000);
    return lastStep() >= step;
  }
};

TEST_F(BoundedTest, AllStepsAreDone) {
  for (const std::string staleness : {"0", "4"}) {
    ClusterOptions options = bounded(staleness);
    options.workers = 3;
    options.steps = 300;
    const ProcessResult result = launch(writeCluster(options, "of" + staleness));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find(", bounded by " + staleness + " steps, 300 steps"), std::string::npos)
        << result.err;
    EXPECT_EQ(summary("of" + staleness)["global_step"], 300);
  }
  expectNothingLeft();
}

// The others wait for it until its lease runs out, then go on without it.
TEST_F(BoundedTest, AWorkerThatStandsStillHoldsTheOthersBackUntilItIsLost) {
  ClusterOptions options = bounded("5");
  options.steps = 100'000'000;
  options.top_more = "timeouts: {lease_seconds: 8, heartbeat_seconds: 0.5}\n";
  options.train_more = "  report: {every_steps: 1}\n";
  start(options, "still");
  awaitStep(200);
  workers_[1]->signal(SIGSTOP);
  ASSERT_TRUE(workers_[0]->waitForOutput("event=waiting for=\"worker/1, more than 5 steps behind",
                                         seconds(10)))
      << workers_[0]->err();
  const int held_at = lastStep();
  EXPECT_FALSE(gets(held_at + 1, seconds(1))) << "it runs ahead";
  workers_[1]->signal(SIGCONT);
  EXPECT_TRUE(gets(held_at + 500, seconds(20))) << workers_[0]->err();
  workers_[1]->signal(SIGSTOP);
  const int lost_at = lastStep();
  EXPECT_TRUE(gets(lost_at + 500, seconds(30))) << workers_[0]->err();
  workers_[1]->signal(SIGCONT);
  EXPECT_EQ(workers_[1]->wait(seconds(20)).exit_code, 69) << "it is fenced";
  workers_[1] = task("worker", 1);
  EXPECT_TRUE(workers_[1]->waitForOutput("event=joined", seconds(20))) << workers_[1]->err();
  const int returned_at = lastStep();
  EXPECT_TRUE(gets(returned_at + 500, seconds(20)))
      << "nobody waits for it to catch up: " << workers_[0]->err();
  const size_t waits = waitsOfChief();
  workers_[1]->signal(SIGSTOP);
  const auto end = std::chrono::steady_clock::now() + seconds(10);
  while (waitsOfChief() == waits && std::chrono::steady_clock::now() < end) ::usleep(5'000);
  EXPECT_GT(waitsOfChief(), waits) << "it counts again";
}

// The chief evaluates while the other worker waits for its next gradient, for longer than a worker
// waits for a step.
TEST_F(BoundedTest, AnEvaluationMayTakeLongerThanAStep) {
  for (const std::string mode : {"bounded", "sync"}) {
    ClusterOptions options = bounded("0");
    options.mode = mode;
    if (mode == "sync") options.replication_more.clear();
    options.steps = 60;
    options.top_more = "timeouts: {step_seconds: 1}\n";
    options.train_more = "  eval: {every_steps: 40}\n";
    failpoints_["worker/0"] = "training.in_evaluation=sleep:8000";
    start(options, "evaluates_" + mode);
    awaitEnd();
    EXPECT_EQ(summary("evaluates_" + mode)["global_step"], 60);
  }
}

TEST_F(BoundedTest, LostWorkersAndAPsAreReplacedAndAllStepsAreDone) {
  expectLossesToCostTimeAlone(bounded("2"));
}

TEST_F(BoundedTest, WithReplicasNothingIsLostOfAPs) {
  ClusterOptions options = bounded("1");
  options.steps = 1'000;
  options.top_more = "durability: replica\n";
  options.train_more = "  report: {every_steps: 10}\n  checkpoint: {every_steps: 100000}\n";
  start(options, "replicated");
  loseAndStartAgain({0}, 100);
  awaitStep(300);
  loseAndStartAgain({1}, 300);
  awaitEnd();
  EXPECT_EQ(summary("replicated")["global_step"], options.steps);
}

}  // namespace
}  // namespace dtf::testing
