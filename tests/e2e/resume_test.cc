// Jobs that are stopped, killed, corrupted or moved go on from their checkpoints.

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/e2e/cluster_fixture.h"
#include "tests/support/test_seed.h"

namespace dtf::testing {

namespace fs = std::filesystem;
using std::chrono::seconds;

class ResumeTest : public ClusterTest {
 protected:
  static ClusterOptions options(const std::string& mode) {
    ClusterOptions options;
    options.mode = mode;
    options.steps = mode == "async" ? 3000 : 1000;
    options.optimizer = "{adam: {learning_rate: 0.01}}";  // slots and a clock to restore
    options.train_more = "  checkpoint: {every_steps: 100, keep: 3}\n";
    return options;
  }

  fs::path checkpoints(const std::string& name = "job") const {
    return fs::path(folder_.path()) / "runs" / name / "checkpoints";
  }

  std::string digestOf(const std::string& name = "job") const {
    return summary(name)["parameters_digest"].asString();
  }

  // The digest of an undisturbed run of the same job.
  std::string calmDigest(ClusterOptions options) {
    EXPECT_EQ(launch(writeCluster(options, "calm")).exit_code, 0);
    return digestOf("calm");
  }

  std::unique_ptr<Process> start(const std::string& file,
                                 std::map<std::string, std::string> environment = unhurried()) {
    return std::make_unique<Process>(launchCommand(file), std::move(environment), folder_.path());
  }

  // Processes of the tasks with `text` in their command line.
  std::vector<pid_t> tasks(const std::string& text) const {
    std::vector<pid_t> pids;
    for (const std::string& process : leftovers())
      if (process.find(text) != std::string::npos) pids.push_back(std::stoi(process));
    return pids;
  }

  std::vector<uint64_t> steps(const std::string& name = "job") const {
    std::vector<uint64_t> found;
    for (const auto& entry : fs::directory_iterator(checkpoints(name))) {
      const std::string folder = entry.path().filename();
      if (folder.find('.') == std::string::npos) found.push_back(std::stoull(folder.substr(5)));
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  // Stops the job somewhere in the middle and runs the same command again.
  void expectTheBytesOfAnUndisturbedRun(const ClusterOptions& options) {
    const std::string calm = calmDigest(options);
    const std::string file = writeCluster(options);
    auto first = start(file);
    ASSERT_TRUE(first->waitForOutput("event=checkpoint step=", seconds(30))) << first->err();
    first->signal(SIGINT);
    const ProcessResult stopped = first->wait(seconds(30));
    EXPECT_EQ(stopped.exit_code, 128 + SIGINT) << stopped.err;
    const Json said = summary();
    EXPECT_EQ(said["outcome"], "stopped");
    for (const auto& task : said["tasks"]) EXPECT_EQ(task["exit_code"], 0) << task;
    const uint64_t reached = said["global_step"].asUint64();
    EXPECT_EQ(steps().back(), reached) << "the last checkpoint is of the very end";
    ASSERT_LT(reached, static_cast<uint64_t>(options.steps));

    const ProcessResult second = launch(file);
    EXPECT_EQ(second.exit_code, 0) << second.err;
    EXPECT_NE(second.err.find("going on from the checkpoint of step " + std::to_string(reached)),
              std::string::npos)
        << second.err;
    EXPECT_EQ(summary()["global_step"], options.steps);
    EXPECT_EQ(digestOf(), calm);
  }
};

TEST_F(ResumeTest, CtrlCSavesAndTheSameCommandEndsWithTheBytesOfAnUndisturbedRun) {
  expectTheBytesOfAnUndisturbedRun(options("sync"));
}

// The masks are drawn from the seed and the batch's number: the step is all there is to restore.
TEST_F(ResumeTest, DropoutGoesOnWithTheMasksOfAnUndisturbedRun) {
  ClusterOptions dropping = options("sync");
  dropping.layers =
      "[flatten: , dense: {units: 16, activation: relu, name: hidden}, dropout: {rate: 0.4},"
      " dense: {units: 10, name: softmax}]";
  expectTheBytesOfAnUndisturbedRun(dropping);
}

TEST_F(ResumeTest, KillOfEverythingAgainAndAgainLosesNothingThatWasSaved) {
  SCOPED_TRACE("seed " + std::to_string(testSeed()) + " (DTF_TEST_SEED)");
  std::mt19937_64 random(testSeed());
  const std::string calm = calmDigest(options("sync"));
  const std::string file = writeCluster(options("sync"));
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    auto launcher = start(file);
    ASSERT_TRUE(launcher->waitForOutput("event=checkpoint step=", seconds(30))) << launcher->err();
    ::poll(nullptr, 0, static_cast<int>(random() % 40));  // somewhere between two of them
    ASSERT_FALSE(tasks("workerd").empty()) << "it ended before it was killed: " << launcher->err();
    for (const pid_t pid : tasks("")) ::kill(pid, SIGKILL);
    EXPECT_NE(launcher->wait(seconds(20)).exit_code, 0);
    ASSERT_TRUE(everybodyGone());
  }
  const ProcessResult last = launch(file);
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(digestOf(), calm);
  EXPECT_LE(steps().size(), 3u) << "keep: 3";
  expectNothingLeft();
}

TEST_F(ResumeTest, AnAsynchronousJobGoesOnToItsLastStep) {
  const std::string file = writeCluster(options("async"));
  auto first = start(file);
  ASSERT_TRUE(first->waitForOutput("event=checkpoint step=", seconds(30))) << first->err();
  for (const pid_t pid : tasks("")) ::kill(pid, SIGKILL);
  first->wait(seconds(20));
  const uint64_t saved = steps().back();
  const ProcessResult second = launch(file);
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.err.find("going on from the checkpoint of step " + std::to_string(saved)),
            std::string::npos)
      << second.err;
  EXPECT_EQ(summary()["global_step"], 3000);
}

// A ps or the chief is killed at each step of a save.
TEST_F(ResumeTest, KillInTheMiddleOfSavingNeverLosesTheLastGoodOne) {
  ClusterOptions once = options("sync");
  once.steps = 3000;  // more than a hundred or two for each point
  const std::string calm = calmDigest(once);
  once.top_more += "launch: {restarts: {max: 0}}\n";
  const std::string file = writeCluster(once);
  for (const char* point :
       {"after_make_attempt", "after_shard_create", "in_shard_write", "after_shard_write",
        "after_shard_sync", "after_shard_close", "after_check_shards", "after_manifest_create",
        "after_manifest_write", "after_manifest_sync", "after_attempt_sync", "after_rename",
        "after_parent_sync"}) {
    SCOPED_TRACE(point);
    auto launcher =
        start(file, {{"DTF_FAILPOINTS", std::string("checkpoint.") + point + "=kill@2"}});
    const ProcessResult killed = launcher->wait(seconds(30));
    EXPECT_EQ(killed.exit_code, 128 + SIGKILL) << killed.err;
    ASSERT_TRUE(everybodyGone());
  }
  const ProcessResult last = launch(file);
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_NE(last.err.find("going on from the checkpoint"), std::string::npos);
  EXPECT_EQ(digestOf(), calm);
  expectNothingLeft();
}

TEST_F(ResumeTest, AnotherNumberOfPsAndAnotherPlacementGoOn) {
  const std::string calm = calmDigest(options("sync"));
  auto first = start(writeCluster(options("sync")));
  ASSERT_TRUE(first->waitForOutput("event=checkpoint step=", seconds(30))) << first->err();
  first->signal(SIGINT);
  first->wait(seconds(30));
  ClusterOptions moved = options("sync");
  moved.ps = 3;
  moved.train_more += "  placement: {strategy: greedy, partition: {min_bytes: 1000}}\n";
  const ProcessResult second = launch(writeCluster(moved));
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.err.find("going on from the checkpoint"), std::string::npos) << second.err;
  EXPECT_EQ(digestOf(), calm);
}

TEST_F(ResumeTest, WithoutACheckpointItSaysThatItStartsAnew) {
  ClusterOptions fresh = options("sync");
  fresh.steps = 20;
  const ProcessResult result = launch(writeCluster(fresh));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("event=starting_anew"), std::string::npos) << result.err;
  EXPECT_EQ(steps(), std::vector<uint64_t>{20}) << "the end is saved too";
}

TEST_F(ResumeTest, ACheckpointOfAnotherModelIsRefusedWithTheDifference) {
  ClusterOptions fresh = options("sync");
  fresh.steps = 20;
  ASSERT_EQ(launch(writeCluster(fresh)).exit_code, 0);
  fresh.layers = "[flatten: , dense: {units: 16, name: hidden}, dense: {units: 10, name: softmax}]";
  const ProcessResult result = launch(writeCluster(fresh));
  EXPECT_EQ(result.exit_code, 78) << result.err;
  for (const char* text :
       {"another model", "hidden/weights", "softmax/weights", "[784, 10]", "[16, 10]"})
    EXPECT_NE(result.err.find(text), std::string::npos) << text << "\n" << result.err;
  EXPECT_EQ(steps(), std::vector<uint64_t>{20}) << "it is still there";
}

TEST_F(ResumeTest, ADamagedCheckpointIsNamedAndThePreviousOneUsed) {
  const std::string calm = calmDigest(options("sync"));
  const std::string file = writeCluster(options("sync"));
  auto first = start(file);
  ASSERT_TRUE(first->waitForOutput("event=checkpoint step=", seconds(30))) << first->err();
  while (first->running() && steps().size() < 2) ::poll(nullptr, 0, 5);
  first->signal(SIGINT);
  first->wait(seconds(30));
  const std::vector<uint64_t> before = steps();
  ASSERT_GE(before.size(), 2u);
  const fs::path shard =
      checkpoints() / ("step-" + std::to_string(before.back())) / "shard-0-of-2.safetensors";
  std::fstream bytes(shard, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekg(20'000);
  const int byte = bytes.get();
  bytes.seekp(20'000);
  bytes.put(static_cast<char>(byte ^ 4));
  bytes.close();
  const ProcessResult second = launch(file);
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.err.find("event=checkpoint_rejected step=" + std::to_string(before.back()) +
                            " file=shard-0-of-2.safetensors tensor=softmax/weights"),
            std::string::npos)
      << second.err;
  EXPECT_NE(second.err.find("going on from the checkpoint of step " +
                            std::to_string(before[before.size() - 2])),
            std::string::npos)
      << second.err;
  EXPECT_EQ(digestOf(), calm);
}

TEST_F(ResumeTest, WhenNoCheckpointCanBeUsedTheJobSaysWhyAndDoesNotStartAnew) {
  ClusterOptions fresh = options("sync");
  fresh.steps = 20;
  const std::string file = writeCluster(fresh);
  ASSERT_EQ(launch(file).exit_code, 0);
  std::ofstream(checkpoints() / "step-20" / "manifest.json") << "damaged";
  const ProcessResult result = launch(file);
  EXPECT_EQ(result.exit_code, 65) << result.err;
  for (const char* text : {"none of the checkpoints", "step 20: ", "manifest.json", "run_dir"})
    EXPECT_NE(result.err.find(text), std::string::npos) << text << "\n" << result.err;
  EXPECT_EQ(steps(), std::vector<uint64_t>{20}) << "it is still there";
}

TEST_F(ResumeTest, AJobOfFewerStepsThanItsCheckpointEndsAtOnce) {
  for (const char* mode : {"sync", "async"}) {
    SCOPED_TRACE(mode);
    ClusterOptions job = options(mode);
    job.steps = 40;
    ASSERT_EQ(launch(writeCluster(job, mode)).exit_code, 0);
    job.steps = 20;
    const ProcessResult result = launch(writeCluster(job, mode));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("step 40, beyond the 20 of this file"), result.err.npos)
        << result.err;
    EXPECT_EQ(summary(mode)["global_step"], 40);
    EXPECT_EQ(steps(mode), std::vector<uint64_t>{40});
  }
}

TEST_F(ResumeTest, AFinishedJobSaysThatThereIsNothingToTrainAndAFreshOneStartsAnew) {
  ClusterOptions job = options("sync");
  job.steps = 40;
  const std::string file = writeCluster(job);
  ASSERT_EQ(launch(file).exit_code, 0);
  const std::string digest = digestOf();
  const ProcessResult again = launch(file);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("job: done already at step 40 ("), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("--fresh begins anew, --set train.steps=80 goes on"), std::string::npos)
      << again.out;
  const ProcessResult fresh = launch(file, {"--fresh"});
  EXPECT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_EQ(fresh.out.find("already at step"), std::string::npos) << fresh.out;
  EXPECT_EQ(digestOf(), digest) << "the same job from its initial values";
  EXPECT_TRUE(fs::exists(folder_.path() + "/runs/job/checkpoints.old-1/step-40/manifest.json"));
}

TEST_F(ResumeTest, ItSaysWhichSettingsChangedSinceTheCheckpoint) {
  ClusterOptions job = options("sync");
  job.steps = 40;
  job.optimizer = "{gradient_descent: {learning_rate: 0.01}}";
  ASSERT_EQ(launch(writeCluster(job)).exit_code, 0);
  job.steps = 60;
  job.optimizer = "{gradient_descent: {learning_rate: 0.02}}";
  const ProcessResult result = launch(writeCluster(job));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* text : {"going on from the checkpoint of step 40 of 60, saved 20",
                           "changed since then: optimizer.learning_rate 0.01 -> 0.02",
                           "changed since then: steps 40 -> 60"})
    EXPECT_NE(result.err.find(text), std::string::npos) << text << "\n" << result.err;
  EXPECT_EQ(result.err.find("warning event=settings_changed"), std::string::npos) << "said twice\n"
                                                                                  << result.err;
  const auto manifest =
      Json::parseOrNull(folder_.read("runs/job/checkpoints/step-60/manifest.json"));
  EXPECT_EQ(manifest.stringOr("created", "").size(),
            std::string("2026-03-01T10:11:12.345+01:00").size())
      << "times are written one way: " << manifest.stringOr("created", "");
}

// One label changes; the name and the size of the file and the number of examples stay.
TEST_F(ResumeTest, ItSaysThatAByteOfTheDataChangedSinceTheCheckpoint) {
  using namespace std::string_literals;
  std::string images = "\0\0\x08\x03\0\0\x01\0\0\0\0\x1c\0\0\0\x1c"s;
  std::string labels = "\0\0\x08\x01\0\0\x01\0"s;
  for (int i = 0; i < 256 * 28 * 28; ++i) images += static_cast<char>(i * 7 % 251);
  for (int i = 0; i < 256; ++i) labels += static_cast<char>(i % 10);
  folder_.write("images", images);
  folder_.write("labels", labels);
  const std::vector<std::string> data = {
      "--set", "train.data.train={format: idx, images: " + folder_.path() +
                   "/images, labels: " + folder_.path() + "/labels}"};
  ClusterOptions job = options("sync");
  job.steps = 20;
  ASSERT_EQ(launch(writeCluster(job), data).exit_code, 0);
  labels.back() = 3;
  folder_.write("labels", labels);
  job.steps = 40;
  const ProcessResult second = launch(writeCluster(job), data);
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.err.find("changed since then: data.train: content "), std::string::npos)
      << second.err;
}

// The job continues from exactly the step that the checkpoint names.
TEST_F(ResumeTest, BetweenModesAndNumbersOfWorkersNoStepIsLost) {
  ClusterOptions job = options("sync");
  job.steps = 21;
  ASSERT_EQ(launch(writeCluster(job)).exit_code, 0);
  uint64_t saved = 21;
  for (const auto& [mode, workers] :
       std::vector<std::pair<std::string, int>>{{"async", 2}, {"async", 3}, {"sync", 2}}) {
    SCOPED_TRACE(mode + " with " + std::to_string(workers));
    job.mode = mode;
    job.workers = workers;
    job.steps += 10;
    const ProcessResult result = launch(writeCluster(job));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("going on from the checkpoint of step " + std::to_string(saved)),
              std::string::npos)
        << result.err;
    saved = summary()["global_step"].asUint64();
    EXPECT_EQ(saved, static_cast<uint64_t>(job.steps));
    EXPECT_EQ(steps().back(), saved);
  }
}

// The checkpoints' folder is moved away and a file stands in its place, then it comes back.
TEST_F(ResumeTest, ADiskThatFailsDoesNotStopTraining) {
  const std::string file = writeCluster(options("sync"));
  auto launcher = start(file);
  ASSERT_TRUE(launcher->waitForOutput("event=checkpoint step=100", seconds(30)));
  const fs::path away = checkpoints().string() + ".away";
  fs::rename(checkpoints(), away);
  std::ofstream(checkpoints()) << "no folder";
  ASSERT_TRUE(launcher->waitForOutput("degraded=checkpoint", seconds(30))) << launcher->err();
  fs::remove(checkpoints());
  fs::rename(away, checkpoints());
  const ProcessResult result = launcher->wait(seconds(120));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["global_step"], 1000);
  EXPECT_GE(summary()["checkpoint"]["failed"].asDouble(), 1);
  EXPECT_EQ(summary()["checkpoint"]["last_step"], 1000) << "it recovered";
}

TEST_F(ResumeTest, WhenTheLastCheckpointCannotBeWrittenTheJobSaysSo) {
  const std::string file = writeCluster(options("sync"));
  auto launcher = start(file);
  ASSERT_TRUE(launcher->waitForOutput("event=checkpoint step=100", seconds(30)));
  fs::rename(checkpoints(), checkpoints().string() + ".away");
  std::ofstream(checkpoints()) << "no folder";
  const ProcessResult result = launcher->wait(seconds(60));
  EXPECT_EQ(result.exit_code, 73) << result.err;
  EXPECT_NE(result.err.find("last checkpoint could not be written"), std::string::npos)
      << result.err;
  EXPECT_EQ(summary()["global_step"], 1000) << "training itself went on to its end";
}

TEST_F(ResumeTest, ASignalToOnePsByHandSavesAndEndsTheWholeJob) {
  ClusterOptions by_hand = options("sync");
  by_hand.steps = 200'000;
  by_hand.ports = freePorts(4);
  const std::string file = writeCluster(by_hand);
  std::vector<Process> all = startFour(file);
  ASSERT_TRUE(all[kChiefTask].waitForOutput("event=checkpoint step=", seconds(30)))
      << all[kChiefTask].err();
  all[1].signal(SIGTERM);
  for (Process& task : all) {
    const ProcessResult result = task.wait(seconds(20));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(summary()["outcome"], "stopped");
  EXPECT_EQ(steps().back(), summary()["global_step"].asUint64());
}

// Each ps has written its shard, but the chief cannot write the manifest.
TEST_F(ResumeTest, ByHandNoPsEndsAsSavedWhenTheLastCheckpointFailed) {
  ClusterOptions by_hand = options("sync");
  by_hand.steps = 200'000;
  by_hand.ports = freePorts(4);
  const std::string file = writeCluster(by_hand);
  std::vector<Process> ps;
  for (const int index : {0, 1}) ps.push_back(startTask(file, "ps", index));
  Process chief =
      startTask(file, "worker", 0, {}, {{"DTF_FAILPOINTS", "checkpoint.after_check_shards=error"}});
  Process worker = startTask(file, "worker", 1);
  ASSERT_TRUE(chief.waitForOutput("event=checkpoint_failed", seconds(30))) << chief.err();
  ps[1].signal(SIGTERM);
  const ProcessResult failed = chief.wait(seconds(20));
  EXPECT_EQ(failed.exit_code, 73) << failed.err;
  for (Process& task : ps) {
    const ProcessResult result = task.wait(seconds(20));
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(result.err.find("last checkpoint could not be written"), std::string::npos)
        << result.err;
  }
  EXPECT_TRUE(steps().empty());
}

TEST_F(ResumeTest, ASignalToAPsOfAJobWithoutCheckpointsInterruptsIt) {
  ClusterOptions by_hand = options("sync");
  by_hand.steps = 100'000'000;
  by_hand.train_more.clear();
  by_hand.ports = freePorts(4);
  const std::string file = writeCluster(by_hand);
  std::vector<Process> all = startFour(file);
  ASSERT_TRUE(all[kChiefTask].waitForOutput("event=progress", seconds(30)))
      << all[kChiefTask].err();
  all[1].signal(SIGTERM);
  for (size_t task = 1; task < all.size(); ++task) {
    const ProcessResult result = all[task].wait(seconds(20));
    EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
    const bool named = result.err.find("ps/1 was told to end, and the job keeps no checkpoints") !=
                       std::string::npos;
    EXPECT_TRUE(named || task < kChiefTask) << result.err;
    const bool says_so =
        result.out.find("nothing was saved: the job has 'checkpoint: none'") != std::string::npos;
    EXPECT_EQ(says_so, task == kChiefTask) << result.out;
  }
  EXPECT_EQ(summary()["outcome"], "interrupted");
  EXPECT_EQ(summary()["exit_code"], 128 + SIGTERM);
}

}  // namespace dtf::testing
