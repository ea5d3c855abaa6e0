// A sync run is a pure function of its file and seed, to the bit, whatever the order in which
// gradients arrive.

#include <poll.h>
#include <signal.h>

#include <random>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

class DeterminismTest : public ClusterTest {
 protected:
  std::string digestOf(const std::string& name) {
    return summary(name)["parameters_digest"].asString();
  }
};

TEST_F(DeterminismTest, ARepeatedSyncRunHasTheSameBytesUnderRandomDelays) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const ClusterOptions options{
      .workers = 3, .mode = "sync", .steps = 400, .optimizer = "{adam: {learning_rate: 0.01}}"};
  ASSERT_EQ(launch(writeCluster(options, "calm")).exit_code, 0);
  for (const char* name : {"shaken1", "shaken2"}) {
    Process launcher(launchCommand(writeCluster(options, name)), {}, folder_.path());
    // Tasks are stopped and continued at random, so that gradients arrive in ever other orders.
    while (launcher.running()) {
      for (const std::string& process : leftovers()) {
        if (process.find("dtf-launch") != std::string::npos || random() % 2) continue;
        const pid_t pid = std::stoi(process);
        ::kill(pid, SIGSTOP);
        ::poll(nullptr, 0, static_cast<int>(random() % 10));
        ::kill(pid, SIGCONT);
      }
    }
    const ProcessResult result = launcher.wait(seconds(60));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(digestOf(name), digestOf("calm"));
    EXPECT_EQ(summary(name)["final_loss"], summary("calm")["final_loss"]);
  }
}

TEST_F(DeterminismTest, TheNumberOfPsDoesNotChangeASyncRun) {
  ClusterOptions options{.mode = "sync", .steps = 100};
  options.ps = 1;
  ASSERT_EQ(launch(writeCluster(options, "one")).exit_code, 0);
  options.ps = 3;
  options.train_more = "  placement: {partition: {min_bytes: 1000}}\n";
  ASSERT_EQ(launch(writeCluster(options, "three")).exit_code, 0);
  EXPECT_EQ(digestOf("one"), digestOf("three"));
}

// The C library overwrites memory that is freed: parameters that were let go too early would show.
TEST_F(DeterminismTest, AllBatchesOfAStepAreComputedFromTheSameParameters) {
  const ClusterOptions options{
      .mode = "sync", .steps = 100, .replication_more = ", replicas_to_aggregate: 6"};
  for (const char* value : {"0", "85", "215"}) {
    Process launcher(launchCommand(writeCluster(options, "overwritten" + std::string(value))),
                     {{"MALLOC_PERTURB_", value}}, folder_.path());
    const ProcessResult result = launcher.wait(seconds(60));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(digestOf("overwritten" + std::string(value)), digestOf("overwritten0"));
  }
}

}  // namespace dtf::testing
