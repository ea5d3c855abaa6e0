// dtf-launch starts a ps again that was killed, or frozen beyond its lease: the workers keep their
// processes, and a synchronous job ends with the same bits.

#include <signal.h>

#include <chrono>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

constexpr auto kEnd = seconds(90);

class PsRestartTest : public ClusterTest {
 protected:
  static ClusterOptions job() {
    return {.mode = "sync",
            .steps = 1'200,
            .optimizer = "{adam: {learning_rate: 0.001}}",
            .top_more = "timeouts: {lease_seconds: 2, heartbeat_seconds: 0.5}\n",
            .train_more = "  checkpoint: {every_steps: 100}\n"};
  }

  // Runs it once in peace, and once with that signal to ps/1 after a checkpoint.
  void disturb(int signal) {
    ASSERT_EQ(launch(writeCluster(job(), "calm")).exit_code, 0);
    Process launcher(launchCommand(writeCluster(job(), "disturbed")), unhurried(), folder_.path());
    ASSERT_TRUE(launcher.waitForOutput("event=checkpoint ", kEnd)) << launcher.err();
    const auto record = Json::parse(folder_.read("runs/disturbed/launch.json"));
    ASSERT_EQ(record["tasks"][1]["name"], "ps/1");
    ::kill(record["tasks"][1]["pid"].asInt(), signal);
    ASSERT_TRUE(launcher.waitForOutput("ps/1 is back", kEnd)) << launcher.err();
    const ProcessResult result = launcher.wait(kEnd);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("dtf-launch: ps/1 lost its values"), std::string::npos) << result.err;
    EXPECT_EQ(summary("disturbed")["parameters_digest"], summary("calm")["parameters_digest"]);
    EXPECT_EQ(summary("disturbed")["global_step"], 1'200);
    const std::vector<int> restarts = {0, 1, 0, 0};  // ps/0, ps/1, worker/0, worker/1
    for (size_t task = 0; task < restarts.size(); ++task)
      EXPECT_EQ(summary("disturbed")["tasks"][task]["restarts"], restarts[task]) << task;
    expectNothingLeft();
  }
};

TEST_F(PsRestartTest, AKilledPsComesBackAndTheBitsStayTheSame) {
  disturb(SIGKILL);
}

TEST_F(PsRestartTest, AFrozenPsIsReplacedWhenItsLeaseHasRunOut) {
  disturb(SIGSTOP);
}

// Nothing holds the values of ps/1: the job ends and names it.
TEST_F(PsRestartTest, WithoutACheckpointTheJobEndsAndSaysWhatWasLost) {
  ClusterOptions options = job();
  options.train_more.clear();
  options.steps = 100'000'000;
  Process launcher(launchCommand(writeCluster(options)), unhurried(), folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("worker 2/2", kEnd)) << launcher.err();
  const auto record = Json::parse(folder_.read("runs/job/launch.json"));
  ::kill(record["tasks"][1]["pid"].asInt(), SIGKILL);
  const ProcessResult result = launcher.wait(seconds(30));
  EXPECT_EQ(result.exit_code, 65) << result.err;
  EXPECT_NE(result.err.find("ps/1 lost its values"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("restarted  ps/1 once, after it was killed by SIGKILL (signal 9)"),
            std::string::npos)
      << result.err;
  expectNobodyLeft();
}

}  // namespace

}  // namespace dtf::testing
