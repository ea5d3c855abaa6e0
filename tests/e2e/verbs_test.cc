// dtf-launch status, logs and stop, beside a job that runs.

#include <signal.h>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

class VerbsTest : public ClusterTest {
 protected:
  VerbsTest() : file_(writeCluster(options())) {}

  static ClusterOptions options() {
    ClusterOptions options;
    options.steps = 100'000'000;
    options.train_more = "  checkpoint: {every_seconds: 600}\n";
    return options;
  }

  ProcessResult verb(const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {binary("dtf-launch"), name, file_};
    argv.insert(argv.end(), more.begin(), more.end());
    return runProcess(std::move(argv), seconds(60), {}, folder_.path());
  }

  const std::string file_;
};

TEST_F(VerbsTest, WithoutAJobEachSaysThatNothingRuns) {
  const ProcessResult status = verb("status");
  EXPECT_EQ(status.exit_code, 3) << "not 1, which is a training that failed";
  EXPECT_NE(status.out.find("job: not running in"), std::string::npos) << status.out;
  const ProcessResult stop = verb("stop");
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  EXPECT_NE(stop.out.find("not running"), std::string::npos) << stop.out;
  const ProcessResult logs = verb("logs");
  EXPECT_EQ(logs.exit_code, 65) << logs.out;
  EXPECT_NE(logs.err.find("no log in"), std::string::npos) << logs.err;
}

TEST_F(VerbsTest, StatusAndLogsOfAJobThatRunsAndStopSavesIt) {
  Process launcher(launchCommand(file_), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("step", seconds(30))) << launcher.err();

  const ProcessResult status = verb("status");
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_NE(status.out.find("running, dtf-launch has pid " + std::to_string(launcher.pid())),
            std::string::npos)
      << status.out;
  const nlohmann::json said = nlohmann::json::parse(verb("status", {"--json"}).out);
  EXPECT_EQ(said["running"], true);
  ASSERT_EQ(said["tasks"].size(), 4u);
  for (const auto& task : said["tasks"]) EXPECT_EQ(task["state"], "running") << task;

  const ProcessResult logs = verb("logs", {"worker/1"});
  EXPECT_EQ(logs.exit_code, 0) << logs.err;
  EXPECT_NE(logs.out.find("worker-1.1.log <=="), std::string::npos) << logs.out;
  EXPECT_NE(logs.out.find("event=joined"), std::string::npos) << logs.out;
  EXPECT_EQ(logs.out.find("ps-0"), std::string::npos) << "only the one that was named";
  EXPECT_EQ(verb("logs", {"worker/7"}).exit_code, 2);

  const ProcessResult stop = verb("stop");
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  EXPECT_EQ(stop.out, "job: stopped\n");
  EXPECT_FALSE(launcher.running()) << "stop waits for the end";
  EXPECT_EQ(launcher.wait(seconds(1)).exit_code, 128 + SIGTERM);
  EXPECT_EQ(summary()["outcome"], "interrupted");
  EXPECT_EQ(summary()["checkpoint"]["last_step"], summary()["global_step"]) << "it was saved";
  EXPECT_EQ(verb("status").exit_code, 3);
  EXPECT_NE(verb("logs").out.find("ps-0.1.log"), std::string::npos) << "they outlive the job";
  expectNothingLeft();
}

}  // namespace dtf::testing
