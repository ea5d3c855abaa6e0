// `launch: {on_sigterm: pause}`: a job saves when its host shuts down, and continues when its tasks
// are started again.

#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr int kPaused = 75;

class PauseTest : public ClusterTest {
 protected:
  static ClusterOptions options(int steps = 1'000) {
    ClusterOptions options;
    options.mode = "sync";
    options.steps = steps;
    options.optimizer = "{adam: {learning_rate: 0.01}}";  // slots and a clock to restore
    options.top_more = "launch: {on_sigterm: pause}\n";
    options.train_more = "  checkpoint: {every_steps: 100, keep: 3}\n";
    return options;
  }

  uint64_t newestCheckpoint() const {
    uint64_t newest = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path() + "/runs/job/checkpoints")) {
      const std::string name = entry.path().filename();
      if (name.find('.') == std::string::npos)
        newest = std::max<uint64_t>(newest, std::stoull(name.substr(5)));
    }
    return newest;
  }

  void awaitTraining(Process& chief) {
    ASSERT_TRUE(chief.waitForOutput("event=checkpoint step=", seconds(30))) << chief.err();
  }

  // Sends SIGTERM to one of the four, as a shutdown of its host does. Returns the step.
  uint64_t pauseBy(size_t told, std::vector<Process>& all) {
    all[told].signal(SIGTERM);
    for (Process& task : all) {
      const ProcessResult result = task.wait(seconds(30));
      EXPECT_EQ(result.exit_code, kPaused) << result.err;
    }
    EXPECT_EQ(summary()["outcome"], "stopped");
    EXPECT_EQ(summary()["exit_code"], kPaused);
    const uint64_t step = summary()["global_step"].asUint64();
    EXPECT_EQ(newestCheckpoint(), step) << "the last checkpoint is of the very end";
    return step;
  }
};

TEST_F(PauseTest, ATaskThatIsToldToEndPausesAllAndStartedAgainTheyEndWithTheSameBytes) {
  ASSERT_EQ(launch(writeCluster(options(), "calm")).exit_code, 0);
  const Json calm = summary("calm");
  ClusterOptions by_hand = options();
  by_hand.ports = freePorts(4);
  const std::string file = writeCluster(by_hand);
  uint64_t reached = 0;
  for (const size_t told : {size_t{1}, kChiefTask + 1}) {  // ps/1, worker/1
    std::vector<Process> all = startFour(file, unhurried());
    ASSERT_NO_FATAL_FAILURE(awaitTraining(all[kChiefTask]));
    const uint64_t step = pauseBy(told, all);
    EXPECT_GT(step, reached);
    EXPECT_LT(step, 1'000u);
    reached = step;
  }
  std::vector<Process> all = startFour(file, unhurried());
  for (Process& task : all) {
    const ProcessResult result = task.wait(seconds(60));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["final_loss"], calm["final_loss"]);
  EXPECT_EQ(summary()["parameters_digest"], calm["parameters_digest"]);
}

// ps/1 does not count the job's steps itself: a message has to tell a pause from the end.
TEST_F(PauseTest, AnAsynchronousJobIsPausedAndItsEndIsNoPause) {
  ClusterOptions by_hand = options(200'000'000);
  by_hand.mode = "async";
  by_hand.ports = freePorts(4);
  std::vector<Process> all = startFour(writeCluster(by_hand), unhurried());
  ASSERT_NO_FATAL_FAILURE(awaitTraining(all[kChiefTask]));
  const uint64_t step = pauseBy(kChiefTask, all);

  by_hand.steps = static_cast<int>(step) + 1000;
  std::vector<Process> again = startFour(writeCluster(by_hand), unhurried());
  for (Process& task : again) {
    const ProcessResult result = task.wait(seconds(60));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST_F(PauseTest, APsThatIsToldToEndBeforeAnyWorkerHasComeIsToBeStartedAgain) {
  ClusterOptions by_hand = options();
  by_hand.ports = freePorts(4);
  Process ps = startTask(writeCluster(by_hand), "ps", 0);
  ASSERT_TRUE(ps.waitForOutput("event=listening", seconds(30))) << ps.err();
  ps.signal(SIGTERM);
  EXPECT_EQ(ps.wait(seconds(30)).exit_code, kPaused);
}

TEST_F(PauseTest, DtfLaunchStartsThePausedTasksAgainAndTheJobIsDone) {
  const std::string file = writeCluster(options());
  Process launcher(launchCommand(file), unhurried(), folder_.path());
  ASSERT_NO_FATAL_FAILURE(awaitTraining(launcher));
  bool told = false;
  for (const std::string& process : leftovers()) {
    if (process.find("psd") == std::string::npos || told) continue;
    told = ::kill(std::stoi(process), SIGTERM) == 0;
  }
  ASSERT_TRUE(told);
  const ProcessResult result = launcher.wait(seconds(90));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("exited with code 75 (paused): starting it again"), std::string::npos)
      << result.err;
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["global_step"], 1'000);
  const Json summed_up = summary();
  for (const auto& task : summed_up["tasks"]) EXPECT_EQ(task["restarts"], 1) << task;
  expectNothingLeft();
}

TEST_F(PauseTest, DtfLaunchThatIsToldToEndItselfStartsNothingAgain) {
  const std::string file = writeCluster(options());
  Process launcher(launchCommand(file), unhurried(), folder_.path());
  ASSERT_NO_FATAL_FAILURE(awaitTraining(launcher));
  launcher.signal(SIGTERM);
  const ProcessResult result = launcher.wait(seconds(30));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["outcome"], "stopped");
  EXPECT_EQ(newestCheckpoint(), summary()["global_step"].asUint64());
  expectNothingLeft();
}

}  // namespace dtf::testing
