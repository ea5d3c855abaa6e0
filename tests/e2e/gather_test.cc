// Checkpoints of tasks that share no disk: each has a run directory of its own, as on a host of its
// own, and the chief alone has the files; or each ps keeps its own.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

namespace fs = std::filesystem;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr auto kEndOfGathering = seconds(120);
constexpr int kGatheringSteps = 2000;

class GatherTest : public ClusterTest {
 protected:
  void TearDown() override {
    tasks_.clear();
    expectNobodyLeft();
  }

  // Shards of more than one piece.
  enum class Files { kShared, kGather, kStay };
  static ClusterOptions job(Files files = Files::kGather, int ps = 2, int keep = 3) {
    return {.ps = ps,
            .mode = "sync",
            .steps = kGatheringSteps,
            .batch_size = 40,
            .optimizer = "{adam: {learning_rate: 0.001}}",
            .layers = "[flatten: , dense: {units: 128, activation: relu}, dense: {units: 10}]",
            .train_more =
                std::string("  placement: {partition: {min_bytes: 1024}}\n"
                            "  report: {every_steps: 50}\n"
                            "  checkpoint: {every_steps: 100") +
                (files == Files::kGather ? ", gather: true}\n"
                 : files == Files::kStay ? ", keep: " + std::to_string(keep) + ", stay: true}\n"
                                         : "}\n")};
  }

  // Digest of the job when its tasks share a disk.
  std::string sharedDigest() {
    EXPECT_EQ(launch(writeCluster(job(Files::kShared), "calm"), {}, kEndOfGathering).exit_code, 0);
    return summary("calm").stringAt("parameters_digest");
  }

  // The ps are on another host than the workers.
  std::string writeOnTwoHosts(ClusterOptions options) {
    options.ports = freePorts(options.ps + options.workers);
    const std::string file = writeCluster(options);
    std::string text = folder_.read("job.yaml");
    for (int i = 0; i < options.ps; ++i) {
      const std::string here = "localhost:" + std::to_string(options.ports[i]);
      text.replace(text.find(here), here.size(), "127.0.0.2:" + std::to_string(options.ports[i]));
    }
    folder_.write("job.yaml", text);
    return file;
  }

  static std::string nameOf(const std::string& job, int index) {
    return job + "-" + std::to_string(index);
  }
  fs::path runOf(const std::string& job, int index) const {
    return fs::path(folder_.path()) / "hosts" / nameOf(job, index) / "run";
  }
  fs::path checkpointsOf(const std::string& job, int index) const {
    return runOf(job, index) / "checkpoints";
  }

  void start(const std::string& job, int index, const std::string& failpoints = "") {
    fs::create_directories(runOf(job, index).parent_path());
    std::map<std::string, std::string> environment;
    if (!failpoints.empty()) environment["DTF_FAILPOINTS"] = failpoints;
    tasks_[nameOf(job, index)] = std::make_unique<Process>(startTask(
        file_, job, index, {"--set", "run_dir=" + runOf(job, index).string()}, environment));
  }
  void startAll(const ClusterOptions& options) {
    file_ = writeOnTwoHosts(options);
    for (int i = 0; i < options.ps; ++i) start("ps", i);
    for (int i = 0; i < options.workers; ++i) start("worker", i);
  }
  Process& task(const std::string& job, int index) { return *tasks_.at(nameOf(job, index)); }
  Process& chief() { return task("worker", 0); }

  void kill(const std::string& job, int index) {
    task(job, index).signal(SIGKILL);
    task(job, index).wait(kEndOfGathering);
  }

  void expectTheEnd() {
    for (auto& [name, task] : tasks_) {
      const ProcessResult result = task->wait(kEndOfGathering);
      EXPECT_EQ(result.exit_code, 0) << name << ": " << result.err;
    }
  }
  std::string digest() {
    return Json::parse(folder_.read("hosts/worker-0/run/summary.json"))
        .stringAt("parameters_digest");
  }
  void expectFilesAtTheChiefOnly(int ps) {
    for (int i = 0; i < ps; ++i) EXPECT_FALSE(fs::exists(checkpointsOf("ps", i))) << i;
    const fs::path last = checkpointsOf("worker", 0) / ("step-" + std::to_string(kGatheringSteps));
    for (int i = 0; i < ps; ++i)
      EXPECT_TRUE(
          fs::exists(last / ("shard-" + nameOf(std::to_string(i) + "-of", ps) + ".safetensors")));
    EXPECT_TRUE(fs::exists(last / "manifest.json"));
  }

  std::string file_;
  std::map<std::string, std::unique_ptr<Process>> tasks_;
};

TEST_F(GatherTest, AKilledPsTakesItsValuesFromTheChiefsFiles) {
  const std::string digest_shared = sharedDigest();
  startAll(job());
  ASSERT_TRUE(chief().waitForOutput("event=checkpoint step=", kEndOfGathering)) << chief().err();
  kill("ps", 1);
  start("ps", 1);
  expectTheEnd();
  EXPECT_THAT(chief().err(), HasSubstr("ps/1 lost its values: all go back"));
  EXPECT_EQ(digest(), digest_shared);
  expectFilesAtTheChiefOnly(2);
}

TEST_F(GatherTest, AJobThatWasKilledWholeGoesOnWithAnotherNumberOfPs) {
  const std::string digest_shared = sharedDigest();
  startAll(job());
  ASSERT_TRUE(chief().waitForOutput("event=checkpoint step=", kEndOfGathering)) << chief().err();
  for (auto& [name, task] : tasks_) task->signal(SIGKILL);
  tasks_.clear();
  startAll(job(Files::kGather, 3));
  expectTheEnd();
  EXPECT_THAT(chief().err(), HasSubstr("event=restored checkpoint="));
  EXPECT_EQ(digest(), digest_shared);
  expectFilesAtTheChiefOnly(3);
}

// A task is killed in the middle of a checkpoint or of a restore: the last whole checkpoint stays,
// and the result has the same bits.
TEST_F(GatherTest, WhoDiesWhileShardsTravelCostsNoCheckpoint) {
  const std::string digest_shared = sharedDigest();
  struct Death {
    std::string job, failpoints;
  };
  for (const Death& death :
       {Death{"ps", "gather.after_stage=kill@3"}, Death{"ps", "gather.before_piece=kill@6"},
        Death{"worker", "checkpoint.in_shard_write=kill@6"},
        Death{"worker", "checkpoint.after_shard_sync=kill@5"},
        Death{"worker", "checkpoint.after_attempt_sync=kill@3"}}) {
    SCOPED_TRACE(death.failpoints);
    fs::remove_all(folder_.path() + "/hosts");
    file_ = writeOnTwoHosts(job());
    for (const std::string name : {"ps", "worker"})
      for (const int index : {0, 1}) {
        const bool dies = name == death.job && index == (name == "ps" ? 1 : 0);
        start(name, index, dies ? death.failpoints : "");
      }
    const int index = death.job == "ps" ? 1 : 0;
    EXPECT_EQ(task(death.job, index).wait(kEndOfGathering).exit_code, 128 + SIGKILL);
    size_t whole = 0;
    for (const auto& entry : fs::directory_iterator(checkpointsOf("worker", 0)))
      whole += fs::exists(entry.path() / "manifest.json") &&
               entry.path().filename().string().find('.') == std::string::npos;
    EXPECT_GT(whole, 0u);
    start(death.job, index);
    expectTheEnd();
    EXPECT_EQ(digest(), digest_shared);
    expectFilesAtTheChiefOnly(2);
    for (const auto& entry : fs::directory_iterator(checkpointsOf("worker", 0)))
      EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos);
    tasks_.clear();
  }
}

TEST_F(GatherTest, WhoDiesWhileItIsBroughtItsValuesIsBroughtThemAgain) {
  const std::string digest_shared = sharedDigest();
  startAll(job());
  ASSERT_TRUE(chief().waitForOutput("event=checkpoint step=", kEndOfGathering)) << chief().err();
  kill("ps", 1);
  start("ps", 1, "gather.before_take=kill@2");
  EXPECT_EQ(task("ps", 1).wait(kEndOfGathering).exit_code, 128 + SIGKILL);
  start("ps", 1);
  expectTheEnd();
  EXPECT_EQ(digest(), digest_shared);
}

TEST_F(GatherTest, ADiskThatIsNotSharedIsNoticedBeforeAnybodyTrains) {
  startAll(job(Files::kShared));
  const ProcessResult result = chief().wait(kEndOfGathering);
  EXPECT_EQ(result.exit_code, 78) << result.err;
  EXPECT_THAT(result.err, HasSubstr("job.yaml:"));
  EXPECT_THAT(result.err, HasSubstr("error: ps/0, ps/1 do not see the chief's files in " +
                                    checkpointsOf("worker", 0).string() + ": set `gather: true`"));
  EXPECT_THAT(result.err, ::testing::Not(HasSubstr("event=progress")));
  for (auto& [name, task] : tasks_) {
    if (task.get() == &chief()) continue;
    EXPECT_NE(task->wait(kEndOfGathering).exit_code, 0) << name;
  }
}

TEST_F(GatherTest, ADiskThatIsSharedIsSeen) {
  const ClusterOptions options = job(Files::kShared);
  const ProcessResult result = launch(writeOnTwoHosts(options), {}, kEndOfGathering);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const int i : {0, 1})
    EXPECT_TRUE(fs::exists(folder_.path() + "/runs/job/checkpoints/step-" +
                           std::to_string(kGatheringSteps) + "/shard-" + std::to_string(i) +
                           "-of-2.safetensors"));
}

// The chief's host has a small disk of its own, which three checkpoints fill.
TEST_F(GatherTest, AFullDiskOfTheChiefKeepsWhatIsWhole) {
  if (runProcess({"unshare", "-rm", "true"}).exit_code != 0)
    GTEST_SKIP() << "this user can't mount a disk of its own (unshare -rm)";
  file_ = writeOnTwoHosts(job());
  for (const int i : {0, 1}) start("ps", i);
  start("worker", 1);
  const std::string run = runOf("worker", 0);
  fs::create_directories(run);
  const std::string words = "mount -t tmpfs -o size=5m none " + run + " && " + binary("workerd") +
                            " --cluster " + file_ + " --task 0 --set run_dir=" + run +
                            "; code=$?; ls " + run + "/checkpoints/*; exit $code";
  tasks_["worker-0"] =
      std::make_unique<Process>(std::vector<std::string>{"unshare", "-rm", "sh", "-c", words},
                                std::map<std::string, std::string>{}, folder_.path());
  const ProcessResult result = chief().wait(kEndOfGathering);
  EXPECT_EQ(result.exit_code, 73) << result.err;
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
  EXPECT_THAT(result.err, HasSubstr("event=progress step=" + std::to_string(kGatheringSteps)));
  EXPECT_THAT(result.out,
              HasSubstr("manifest.json\nshard-0-of-2.safetensors\nshard-1-of-2.safetensors\n"));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr(".tmp-")));
}

// Each ps keeps its shards below its own run directory, the chief has the manifests.
class StayTest : public GatherTest {
 protected:
  using Names = std::vector<std::string>;

  static Names namesIn(const fs::path& folder) {
    Names names;
    if (fs::exists(folder))
      for (const auto& entry : fs::directory_iterator(folder))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  fs::path shardsOf(int ps) const { return runOf("ps", ps) / "shards"; }
  // The folder of the shards of "step-2000": "step-2000-1f3a.9".
  std::string staysIn(const std::string& folder) {
    return Json::parse(folder_.read("hosts/worker-0/run/checkpoints/" + folder + "/manifest.json"))
        .stringAt("stays_in");
  }
  // Expects the shards of the kept checkpoints alone, none of removed or failed ones. On a slow
  // disk a save that is due during another takes a later step, so there may be fewer than `keep`.
  void expectFilesWhereTheyStay(int ps, size_t keep = 3) {
    Names due;
    const Names kept = namesIn(checkpointsOf("worker", 0));
    EXPECT_LE(kept.size(), keep);
    EXPECT_THAT(kept, ::testing::Contains("step-" + std::to_string(kGatheringSteps)));
    for (const std::string& folder : kept) {
      EXPECT_EQ(namesIn(checkpointsOf("worker", 0) / folder), Names{"manifest.json"});
      due.push_back(staysIn(folder));
    }
    std::sort(due.begin(), due.end());
    for (int i = 0; i < ps; ++i) {
      EXPECT_EQ(namesIn(shardsOf(i)), due) << i;
      for (const std::string& name : due)
        EXPECT_EQ(namesIn(shardsOf(i) / name),
                  Names{"shard-" + nameOf(std::to_string(i) + "-of", ps) + ".safetensors"});
    }
  }
  void killAll() {
    for (auto& [name, task] : tasks_) task->signal(SIGKILL);
    tasks_.clear();
  }
  void startUntilACheckpoint() {
    startAll(job(Files::kStay));
    ASSERT_TRUE(chief().waitForOutput("event=checkpoint step=", kEndOfGathering)) << chief().err();
  }
  ProcessResult onTheChiefsHost(const std::string& verb,
                                const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {binary("dtf-launch"), verb, file_, "--run-dir",
                                        runOf("worker", 0).string()};
    command.insert(command.end(), more.begin(), more.end());
    return runProcess(command, seconds(60), {}, folder_.path());
  }
};

TEST_F(StayTest, AKilledPsTakesItsValuesFromItsOwnFiles) {
  const std::string digest_shared = sharedDigest();
  startUntilACheckpoint();
  kill("ps", 1);
  start("ps", 1);
  expectTheEnd();
  EXPECT_THAT(chief().err(), HasSubstr("ps/1 lost its values: all go back"));
  EXPECT_EQ(digest(), digest_shared);
  expectFilesWhereTheyStay(2);
}

TEST_F(StayTest, WhoDiesInTheMiddleOfASaveCostsNoCheckpoint) {
  const std::string digest_shared = sharedDigest();
  struct Death {
    std::string job, failpoints;
  };
  for (const Death& death :
       {Death{"ps", "checkpoint.in_shard_write=kill@6"}, Death{"ps", "stay.after_shard=kill@3"},
        Death{"worker", "checkpoint.after_manifest_sync=kill@3"},
        Death{"worker", "checkpoint.after_trash_rename=kill@2"},
        Death{"worker", "stay.after_drop=kill@2"}}) {
    SCOPED_TRACE(death.failpoints);
    fs::remove_all(folder_.path() + "/hosts");
    file_ = writeOnTwoHosts(
        job(Files::kStay, 2, 1));  // the second one after the initial one removes files
    for (const std::string name : {"ps", "worker"})
      for (const int index : {0, 1}) {
        const bool dies = name == death.job && index == (name == "ps" ? 1 : 0);
        start(name, index, dies ? death.failpoints : "");
      }
    const int index = death.job == "ps" ? 1 : 0;
    EXPECT_EQ(task(death.job, index).wait(kEndOfGathering).exit_code, 128 + SIGKILL);
    start(death.job, index);
    expectTheEnd();
    EXPECT_EQ(digest(), digest_shared);
    expectFilesWhereTheyStay(2, 1);
    tasks_.clear();
  }
}

TEST_F(StayTest, AJobThatWasKilledWholeGoesOnWithAnotherNumberOfPs) {
  const std::string digest_shared = sharedDigest();
  startUntilACheckpoint();
  killAll();
  startAll(job(Files::kStay, 3));
  expectTheEnd();
  EXPECT_THAT(chief().err(), HasSubstr("event=restored checkpoint="));
  EXPECT_EQ(digest(), digest_shared);
}

TEST_F(StayTest, PsThatChangedPlacesFindEachOthersFiles) {
  const std::string digest_shared = sharedDigest();
  startUntilACheckpoint();
  killAll();
  const fs::path aside = folder_.path() + "/aside";
  fs::rename(runOf("ps", 0), aside);
  fs::rename(runOf("ps", 1), runOf("ps", 0));
  fs::rename(aside, runOf("ps", 1));
  startAll(job(Files::kStay));
  expectTheEnd();
  EXPECT_THAT(chief().err(), HasSubstr("event=restored checkpoint="));
  EXPECT_EQ(digest(), digest_shared);
}

TEST_F(StayTest, APsThatComesBackWithoutItsFilesEndsTheJobInWords) {
  startUntilACheckpoint();
  killAll();
  fs::rename(shardsOf(1), folder_.path() + "/kept");
  startAll(job(Files::kStay));
  const ProcessResult result = chief().wait(kEndOfGathering);
  EXPECT_EQ(result.exit_code, 65) << result.err;
  EXPECT_THAT(
      result.err,
      HasSubstr("shard-1-of-2.safetensors was written by the host of shard 1, on 127.0.0.2, "
                "and none of ps/0 on 127.0.0.2, ps/1 on 127.0.0.2 has it in shards/step-"));
  killAll();
  fs::rename(folder_.path() + "/kept", shardsOf(1));
  startAll(job(Files::kStay));
  expectTheEnd();
}

// The error names each shard that is missing, and its host; with the shards the model can be used.
TEST_F(StayTest, WhoUsesTheModelIsToldWhatIsMissing) {
  startAll(job(Files::kStay));
  expectTheEnd();
  tasks_.clear();
  const std::string step = "step-" + std::to_string(kGatheringSteps);
  using Words = std::vector<std::string>;
  for (const auto& [verb, more] :
       std::map<std::string, Words>{{"eval", {}}, {"export", {"--to", "m.npz"}}, {"predict", {}}}) {
    const ProcessResult result = onTheChiefsHost(verb, more);
    EXPECT_EQ(result.exit_code, 65) << result.err;
    EXPECT_THAT(result.err,
                HasSubstr("shard-0-of-2.safetensors stays with ps/0 on 127.0.0.2, which wrote it "
                          "to shards/" +
                          staysIn(step) + " below its run_dir: copy it to "))
        << verb;
  }
  for (const int i : {0, 1})
    fs::copy(shardsOf(i) / staysIn(step), checkpointsOf("worker", 0) / step);
  const ProcessResult result = onTheChiefsHost("eval");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("accuracy "));
}

}  // namespace dtf::testing
