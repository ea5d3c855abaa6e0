// A job without parameter servers: one workerd that holds the values itself.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

class OneProcessTest : public ClusterTest {
 protected:
  static ClusterOptions options(const std::string& mode) {
    ClusterOptions options;
    options.ps = 1;
    options.workers = 1;
    options.mode = mode;
    options.optimizer = "{adam: {learning_rate: 0.01, moving_average: {decay: 0.9}}}";
    options.train_more = "  checkpoint: {every_steps: 10}\n";
    return options;
  }

  // The same file, its cluster replaced by `cluster`.
  std::string withoutPs(const ClusterOptions& options, const std::string& cluster,
                        const std::string& name) {
    writeCluster(options, name);
    const std::regex tasks("cluster:\\n  ps: .*\\n  worker: .*\\n");
    const std::string text = std::regex_replace(folder_.read(name + ".yaml"), tasks, cluster);
    return folder_.write(name + ".yaml", text);
  }
};

// With checkpoints, evaluation and moving averages.
TEST_F(OneProcessTest, EndsWithTheBitsOfOnePsAndOneWorker) {
  for (const std::string mode : {"sync", "async"}) {
    ASSERT_EQ(launch(writeCluster(options(mode), mode)).exit_code, 0);
    const Json expected = summary(mode);
    int files = 0;
    for (const std::string cluster : {"cluster: {worker: [local]}\n", ""}) {
      const std::string name = mode + std::to_string(++files);
      const ProcessResult result = launch(withoutPs(options(mode), cluster, name));
      ASSERT_EQ(result.exit_code, 0) << result.err;
      EXPECT_NE(result.err.find("one process, no ps"), std::string::npos) << result.err;
      const Json said = summary(name);
      EXPECT_EQ(said["parameters_digest"], expected["parameters_digest"]) << name;
      EXPECT_EQ(said["eval"]["loss"], expected["eval"]["loss"]);
      EXPECT_EQ(said["checkpoint"]["last_step"], 40);
      EXPECT_EQ(said["tasks"].size(), 1u);
    }
  }
  expectNothingLeft();
}

TEST_F(OneProcessTest, GoesOnFromItsCheckpointWithTheSameBits) {
  ClusterOptions long_job = options("sync");
  long_job.steps = 400;
  ASSERT_EQ(launch(writeCluster(long_job, "whole")).exit_code, 0);
  const std::string file = withoutPs(long_job, "cluster: {worker: [local]}\n", "parts");
  ASSERT_EQ(launch(file, {"--set", "train.steps=130"}).exit_code, 0);
  const ProcessResult rest = launch(file);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_NE(rest.err.find("going on from the checkpoint of step 130"), std::string::npos)
      << rest.err;
  EXPECT_EQ(summary("parts")["parameters_digest"], summary("whole")["parameters_digest"]);
}

TEST_F(OneProcessTest, IsSavedWhenItIsStopped) {
  ClusterOptions endless = options("sync");
  endless.steps = 100'000'000;
  const std::string file = withoutPs(endless, "cluster: {worker: [local]}\n", "job");
  Process launcher(launchCommand(file), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("event=checkpoint ", seconds(30))) << launcher.err();
  launcher.signal(SIGINT);
  const ProcessResult result = launcher.wait(seconds(20));
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
  EXPECT_EQ(summary()["outcome"], "stopped") << result.err;
  EXPECT_EQ(summary()["checkpoint"]["last_step"], summary()["global_step"]);
  expectNothingLeft();
}

TEST_F(OneProcessTest, MistakesAreSaidInWords) {
  const std::string alone = withoutPs(options("sync"), "durability: replica\n", "alone");
  const ProcessResult refused = launch(alone);
  EXPECT_EQ(refused.exit_code, 78);
  EXPECT_NE(refused.err.find("'replica' needs at least two"), std::string::npos) << refused.err;
  const std::string one =
      withoutPs(options("sync"), "durability: {snapshot: {every_steps: 5}}\n", "one");
  const ProcessResult snapshot = launch(one);
  EXPECT_EQ(snapshot.exit_code, 78);
  EXPECT_NE(snapshot.err.find("the cluster has none"), std::string::npos) << snapshot.err;
}

}  // namespace dtf::testing
