#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/base/json.h"
#include "tests/e2e/apart_fixture.h"

// The trained model of a job over ssh, at the host where the job was started.

namespace dtf::testing {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kModelSteps = 60;
const std::string kGathered = "checkpoint: {every_steps: 50, gather: true}\n";
const std::string kStaying = "checkpoint: {every_steps: 50, stay: true}\n";

class SshModelTest : public SshApartTest {
 protected:
  fs::path here() const { return folder_.path() + "/runs/job"; }
  fs::path checkpoint(const fs::path& run_dir, int step = kModelSteps) const {
    return run_dir / "checkpoints" / ("step-" + std::to_string(step));
  }
  // Only these have ways to be timed.
  void addConvolution() {
    const std::string dense = "[flatten: ,";
    std::ifstream file(folder_.path() + "/train.yaml");
    std::string text(std::istreambuf_iterator<char>(file), {});
    const size_t at = text.find(dense);
    ASSERT_NE(at, std::string::npos) << text;
    folder_.write("train.yaml",
                  text.insert(at + 1, "conv2d: {filters: 4, kernel_size: 3, strides: 2}, "));
  }
  ProcessResult train(const std::string& file, std::vector<std::string> more = {}) {
    return launch(file, std::move(more), kPatienceApart);
  }
  ProcessResult verb(const std::string& name, const std::string& file,
                     const std::vector<std::string>& more) {
    std::vector<std::string> argv = {binary("dtf-launch"), name, file};
    argv.insert(argv.end(), more.begin(), more.end());
    return runProcess(std::move(argv), kPatienceApart, {}, folder_.path());
  }
  // The model that came back gives the loss of the job's evaluation, to the last bit.
  void expectModelIsHere(const std::string& file) {
    const ProcessResult result = verb("eval", file, {"--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto said = Json::parse(result.out);
    EXPECT_EQ(said["step"], kModelSteps);
    EXPECT_EQ(said["loss"].asDouble(), summary()["eval"]["loss"].asDouble());
    for (const auto& entry : fs::directory_iterator(here() / "checkpoints"))
      EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr(".tmp")));
  }
};

TEST_F(SshModelTest, TheLastCheckpointComesFromTheChiefsHostOnce) {
  const std::string file = job(kModelSteps, kGathered + "kernels: timed\n");
  const ProcessResult first = train(file);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("copying the checkpoint of step 60, "));
  EXPECT_THAT(first.err, HasSubstr(", from 127.0.0.1\n"));
  const std::string model = "model      " + checkpoint(here()).string() + "\n";
  EXPECT_THAT(first.out, HasSubstr(model));
  EXPECT_EQ(summary()["model"], checkpoint(here()).string());
  EXPECT_FALSE(fs::exists(checkpoint(here(), 50))) << "only the last one comes";
  EXPECT_FALSE(fs::exists(here() / "kernels.json")) << "without a convolution there is none";
  expectModelIsHere(file);
  EXPECT_EQ(verb("export", file, {"--to", "model.npz"}).exit_code, 0);
  EXPECT_EQ(verb("predict", file, {}).exit_code, 0);

  const ProcessResult again = train(file);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr("copying the checkpoint")));
  EXPECT_THAT(again.out, HasSubstr(model));
}

// One worker: all have the same run directory where kernels are timed.
TEST_F(SshModelTest, TheChoicesOfKernelsComeWithIt) {
  const std::string file = job(kModelSteps, kGathered + "kernels: timed\n");
  addConvolution();
  const ProcessResult result = train(file, {"--set", "cluster.worker=['127.0.0.1:auto']"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(disk(1) / "kernels.json"));
  EXPECT_TRUE(fs::exists(here() / "kernels.json"));
  expectModelIsHere(file);
}

TEST_F(SshModelTest, AnotherRunsCheckpointsAreSetAside) {
  const std::string file = job(kModelSteps, kGathered);
  ASSERT_EQ(train(file).exit_code, 0);
  const ProcessResult fresh =
      train(file, {"--fresh", "--set", "train.optimizer.adam.learning_rate=0.01"});
  ASSERT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_THAT(fresh.err, HasSubstr("were of another run, and are in checkpoints.old-1 now"));
  EXPECT_TRUE(fs::exists(here() / "checkpoints.old-1/step-60/manifest.json"));
  expectModelIsHere(file);
}

TEST_F(SshModelTest, ShardsThatStayComeFromTheHostsOfTheirPs) {
  const std::string file = job(kModelSteps, kStaying);
  const ProcessResult result = train(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr(", from the hosts of the ps\n"));
  EXPECT_FALSE(fs::exists(checkpoint(disk(1)) / "shard-1-of-2.safetensors"));
  EXPECT_TRUE(fs::exists(checkpoint(here()) / "shard-1-of-2.safetensors"));
  expectModelIsHere(file);
}

TEST_F(SshModelTest, OnTheChiefsOwnDiskOnlyShardsOfOthersAreMissing) {
  useAgents("[ $3 = 127.0.0.1 ] && exec " + folder_.path() + "/bin/dtf-agent\n");
  const std::string file = job(kModelSteps, kStaying);
  const ProcessResult result = train(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr(", from the hosts of the ps\n"));
  EXPECT_FALSE(fs::exists(checkpoint(here()) / "shard-0-of-2.safetensors")) << "it is in shards/";
  expectModelIsHere(file);

  fs::remove_all(here());
  const ProcessResult gathered = train(job(kModelSteps, kGathered));
  ASSERT_EQ(gathered.exit_code, 0) << gathered.err;
  EXPECT_THAT(gathered.err, Not(HasSubstr("copying the checkpoint")));
  EXPECT_THAT(gathered.out, HasSubstr("model      " + checkpoint(here()).string()));
  expectModelIsHere(file);
}

TEST_F(SshModelTest, AModelThatCantBeWrittenHereIsWhereItWasAndTheJobIsDone) {
  const std::string file = job(kModelSteps, kGathered);
  fs::create_directories(here());
  folder_.write("runs/job/checkpoints", "in the way");
  const ProcessResult result = train(file);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("warning: the model was not copied here: cannot "));
  EXPECT_THAT(result.err, HasSubstr("it is on 127.0.0.1, in " + checkpoint(here()).string()));
  EXPECT_THAT(result.out, Not(HasSubstr("model ")));
  EXPECT_FALSE(summary().contains("model"));

  fs::remove(here() / "checkpoints");
  ASSERT_EQ(train(file, {"--set", "launch.fetch_model=false"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(here() / "checkpoints"));
  const ProcessResult again = train(file);
  EXPECT_THAT(again.err, HasSubstr("already at step 60"));
  expectModelIsHere(file);
}

TEST_F(SshModelTest, AJobThatIsToldToStopBringsWhatItHasSaved) {
  const std::string file = job(1000000, kGathered);
  Process launcher = start(file);
  ASSERT_TRUE(launcher.waitForOutput("ps 2/2 worker 2/2", kPatienceApart)) << launcher.err();
  launcher.signal(SIGTERM);
  const ProcessResult result = launcher.wait(kPatienceApart);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto step = summary()["global_step"].asInt();
  EXPECT_TRUE(fs::exists(checkpoint(here(), step) / "manifest.json")) << result.err;
  EXPECT_EQ(summary()["outcome"], "stopped");
  expectNoTask();
}

// However long its model takes: here until stop has ended, which may wait longer than the model
// may.
TEST_F(SshModelTest, StopEndsWhenTheJobHas) {
  useAgents("if [ $3 = 127.0.0.1 ]; then mkdir -p " + disk(1).string() +
            "; exec unshare -rm sh -c 'mount --bind " + disk(1).string() + " " + here().string() +
            " && " + folder_.path() + "/bin/dtf-agent | (stdbuf -o0 head -c 1500000; until [ -e " +
            folder_.path() + "/go ]; do sleep 0.1; done; cat)'; fi\n");
  const std::string file = job(1000000, kGathered);
  Process launcher(
      launchCommand(
          file, {"--set", "timeouts.stop_seconds=1", "--set", "timeouts.lease_seconds=60", "--set",
                 "train.model.layers=[flatten: , dense: {units: 300}, dense: {units: 10}]"}),
      {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("ps 2/2 worker 2/2", kPatienceApart)) << launcher.err();
  const ProcessResult stopped = verb("stop", file, {"--set", "timeouts.stop_seconds=60"});
  folder_.write("go", "");
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr(", saved"));
  const ProcessResult result = launcher.wait(kPatienceApart);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(checkpoint(here(), summary()["global_step"].asInt()))) << result.err;
}

}  // namespace dtf::testing
