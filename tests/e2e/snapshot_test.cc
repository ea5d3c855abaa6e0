// `durability: snapshot`: a ps that is lost costs the steps since the newest snapshot in the host's
// memory, not since the checkpoint. Real processes, real kill -9, real /dev/shm.

#include <filesystem>
#include <fstream>

#include "common/base/json.h"
#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {

namespace fs = std::filesystem;

namespace {

constexpr int kEverySteps = 10;

class SnapshotTest : public RecoveryTest {
 protected:
  ~SnapshotTest() override {
    for (const fs::path& folder : memoryOf(name_)) fs::remove_all(folder);
  }

  // Sync mode with Adam: its slots and clock must be restored, too.
  static ClusterOptions savedInMemory(const std::string& mode = "sync") {
    ClusterOptions options = syncJob();
    options.mode = mode;
    options.top_more =
        "durability: {snapshot: {every_steps: " + std::to_string(kEverySteps) + "}}\n";
    return options;
  }
  // Checkpoints so rare that the first is the only one before the end.
  static ClusterOptions savedInMemoryAndOnce(const std::string& mode = "sync") {
    ClusterOptions options = savedInMemory(mode);
    options.train_more += "  checkpoint: {every_steps: 1000000}\n";
    return options;
  }

  void loseAndStartAgain(const std::vector<int>& ps, int step) {
    awaitStep(step);
    for (const int index : ps) kill("ps", index);
    for (const int index : ps) ps_[index] = task("ps", index);
  }

  // The folders that jobs of that name have in /dev/shm.
  static std::vector<fs::path> memoryOf(const std::string& name) {
    std::vector<fs::path> found;
    std::error_code none;  // without shared memory
    for (const auto& entry : fs::directory_iterator("/dev/shm", none))
      if (entry.path().filename().string().find("-" + name + "-") != std::string::npos)
        found.push_back(entry.path());
    return found;
  }
  // Shard files of one ps, which may be writing and removing some at the same time.
  static std::vector<fs::path> shardFilesOf(const std::string& name, int ps) {
    std::vector<fs::path> files;
    for (const fs::path& job : memoryOf(name)) {
      std::error_code gone;
      fs::recursive_directory_iterator entry(job / ("ps-" + std::to_string(ps)), gone);
      for (; !gone && entry != fs::recursive_directory_iterator(); entry.increment(gone))
        if (entry->path().extension() == ".safetensors") files.push_back(entry->path());
    }
    return files;
  }

  // An undisturbed job ends with the same bits as this one.
  void expectTheBitsOfACalmJob() {
    awaitEnd();
    EXPECT_EQ(summary(name_)["global_step"], kSteps);
    const std::string disturbed = digestOf(name_);
    ClusterOptions calm = syncJob();
    start(calm, "calm");
    awaitEnd();
    EXPECT_EQ(disturbed, digestOf("calm"));
  }

  // Distinct for each test process.
  const std::string name_ = "memory" + std::to_string(::getpid());
};

TEST_F(SnapshotTest, ALostPsCostsTheStepsSinceTheSnapshotAndNoBit) {
  start(savedInMemoryAndOnce(), name_);
  loseAndStartAgain({1}, 300);
  loseAndStartAgain({0}, 700);
  EXPECT_TRUE(workers_[0]->waitForOutput("ps/0 lost its values: all go back", kEnd));
  const std::vector<int> lost = stepsLost("snapshot");
  EXPECT_EQ(lost.size(), 2u) << workers_[0]->err();
  // A checkpoint would have cost 300 and 700 steps. The second snapshot is taken while the first is
  // copied.
  for (const int steps : lost) EXPECT_LE(steps, 20 * kEverySteps);
  expectTheBitsOfACalmJob();
  EXPECT_GT(summary(name_)["snapshots"]["kept"].asDouble(), 5);
  EXPECT_TRUE(memoryOf(name_).empty()) << "each ps has removed its own";
}

// Where an interval takes longer than a snapshot, it is the bound.
TEST_F(SnapshotTest, OfSlowStepsNoMoreThanTheLastIntervalIsLost) {
  start(slowJob("durability: {snapshot: {every_steps: 40}}\n", ""), name_);
  loseAndStartAgain({1}, 130);
  loseAndStartAgain({0}, 290);
  EXPECT_TRUE(workers_[0]->waitForOutput("ps/0 lost its values: all go back", kEnd));
  const std::vector<int> lost = stepsLost("snapshot");
  EXPECT_EQ(lost.size(), 2u) << workers_[0]->err();
  for (const int steps : lost) EXPECT_LE(steps, 40 + kSlowStepsOfACut);
  awaitEnd();
}

TEST_F(SnapshotTest, AllPsMayBeLostAtOnceAndNoCheckpointIsNeeded) {
  start(savedInMemory(), name_);
  loseAndStartAgain({0, 1}, 300);
  EXPECT_TRUE(workers_[0]->waitForOutput("ps/0, ps/1 lost their values: all go back", kEnd));
  EXPECT_EQ(stepsLost("snapshot").size(), 1u) << workers_[0]->err();
  expectTheBitsOfACalmJob();
}

TEST_F(SnapshotTest, AsyncTrainingGoesBackToIt) {
  start(savedInMemoryAndOnce("async"), name_);
  loseAndStartAgain({1}, 300);
  loseAndStartAgain({0}, 700);
  EXPECT_TRUE(workers_[0]->waitForOutput("ps/0 lost its values: all go back", kEnd));
  EXPECT_EQ(stepsLost("snapshot").size(), 2u) << workers_[0]->err();
  awaitEnd();
  EXPECT_EQ(summary(name_)["global_step"], kSteps);
}

TEST_F(SnapshotTest, DamagedOnesGiveWayToTheCheckpoint) {
  start(savedInMemoryAndOnce(), name_);
  awaitStep(300);
  kill("ps", 1);
  const std::vector<fs::path> files = shardFilesOf(name_, 1);
  EXPECT_FALSE(files.empty());
  for (const fs::path& file : files) {
    std::fstream shard(file, std::ios::in | std::ios::out | std::ios::binary);
    shard.seekp(-4, std::ios::end);
    shard.write("\x7f\x7f\x7f\x7f", 4);
  }
  ps_[1] = task("ps", 1);
  EXPECT_TRUE(workers_[0]->waitForOutput(" steps_lost=", kEnd));
  const std::string log = workers_[0]->err();
  EXPECT_NE(log.find("event=snapshot_rejected"), std::string::npos) << log;
  EXPECT_NE(log.find("ps/1: "), std::string::npos) << log;
  EXPECT_EQ(stepsLost("checkpoint").size(), 1u) << log;
  expectTheBitsOfACalmJob();
}

TEST_F(SnapshotTest, TheChiefMayBeLostWithThePs) {
  start(savedInMemoryAndOnce(), name_);
  awaitStep(300);
  kill("ps", 1);
  kill("worker", 0);
  ps_[1] = task("ps", 1);
  workers_[0] = task("worker", 0);
  EXPECT_TRUE(workers_[0]->waitForOutput(" steps_lost=", kEnd));
  EXPECT_EQ(stepsLost("snapshot").size(), 1u) << workers_[0]->err();
  expectTheBitsOfACalmJob();
}

// The whole job is killed; a new one continues from the snapshot it left.
TEST_F(SnapshotTest, AJobThatStartsGoesOnFromWhatADeadOneLeft) {
  ClusterOptions options = savedInMemory();
  options.steps = 100'000'000;
  start(options, name_);
  awaitStep(70);
  for (const int index : {0, 1}) {
    kill("ps", index);
    kill("worker", index);
  }
  EXPECT_EQ(memoryOf(name_).size(), 1u);
  ps_.clear();
  workers_.clear();
  start(savedInMemory(), name_);
  EXPECT_TRUE(workers_[0]->waitForOutput("no ps holds values: all take the snapshot of", kEnd))
      << workers_[0]->err();
  expectTheBitsOfACalmJob();
}

// A killed ps cannot remove its own snapshots, and neither can a ps whose launcher ends at once.
TEST_F(SnapshotTest, NothingOutlivesTheLaunch) {
  ClusterOptions options = savedInMemory();
  options.steps = 100'000'000;
  Process launcher(launchCommand(writeCluster(options, name_)), unhurried(), folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("step ", kEnd)) << launcher.err();
  while (shardFilesOf(name_, 1).empty() && launcher.running()) ::usleep(5'000);
  const auto record = Json::parse(folder_.read("runs/" + name_ + "/launch.json"));
  ::kill(record["tasks"][1]["pid"].asInt(), SIGKILL);
  ASSERT_TRUE(launcher.waitForOutput("ps/1 lost its values: all go back", kEnd)) << launcher.err();
  for (const auto& task : record["tasks"])
    if (task["name"] != "ps/1") ::kill(task["pid"].asInt(), SIGKILL);
  launcher.signal(SIGINT);
  launcher.signal(SIGINT);
  launcher.wait(kEnd);
  EXPECT_TRUE(memoryOf(name_).empty());
  expectNobodyLeft();
}

}  // namespace

}  // namespace dtf::testing
