// How a job ends: a signal at the wrong moment, a disk that fails, a ps that freezes; and the
// outcome in summary.json.

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

namespace fs = std::filesystem;
using std::chrono::seconds;
using Environment = std::map<std::string, std::string>;

namespace {

Environment failpoints(const std::string& plan) {
  return {{"DTF_FAILPOINTS", plan}};
}

// The chief alone passes these: it writes the manifest of a checkpoint between them. The first
// checkpoint holds the initial values.
constexpr char kTermWhileSaving[] =
    "checkpoint.after_check_shards=term@2;checkpoint.after_manifest_create=sleep:500@2";
constexpr char kTermAndAVerySlowDisk[] =
    "checkpoint.after_check_shards=term@2;checkpoint.after_manifest_create=sleep:60000@2";
constexpr char kFreezeWhileSaving[] =
    "checkpoint.after_check_shards=stop@2;checkpoint.after_manifest_create=sleep:500@2";

// Whether the process is stopped (SIGSTOP).
bool isFrozen(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t end = stat.rfind(") ");
  return end != std::string::npos && stat[end + 2] == 'T';
}

// A job that never ends by itself, with a checkpoint under way at any time.
ClusterOptions savingAlways() {
  ClusterOptions options;
  options.mode = "sync";
  options.steps = 100'000'000;
  options.train_more = "  checkpoint: {every_steps: 1}\n";
  return options;
}

// The loss is no number after a few steps.
ClusterOptions diverging(ClusterOptions options) {
  options.optimizer = "{gradient_descent: {learning_rate: 1.0e+6}}";
  options.layers =
      "[flatten: , dense: {units: 30, activation: relu}, dense: {units: 30, activation: relu}, "
      "dense: {units: 10}]";
  return options;
}

// Four times as long (process.h) is still below timeouts.step_seconds, 60.
constexpr auto kEndsWithin = seconds(10);

}  // namespace

// By hand, so that each process has its own failpoints and exit code.
class EndingTest : public ClusterTest {
 protected:
  // A job that saves the initial values, and one more checkpoint at its end.
  static ClusterOptions options(int steps = 200) {
    ClusterOptions options;
    options.mode = "sync";
    options.steps = steps;
    options.train_more = "  checkpoint: {every_seconds: 600}\n";
    return options;
  }

  std::string byHand(ClusterOptions options) {
    options.ports = freePorts(4);
    return writeCluster(options);
  }

  // ps/0, ps/1, worker/0, worker/1.
  std::vector<Process> startAll(const std::string& file, const Environment& of_chief = {},
                                const Environment& of_ps1 = {}) {
    std::vector<Process> all;
    all.push_back(startTask(file, "ps", 0));
    all.push_back(startTask(file, "ps", 1, {}, of_ps1));
    all.push_back(startTask(file, "worker", 0, {}, of_chief));
    all.push_back(startTask(file, "worker", 1));
    return all;
  }
  static Process& chief(std::vector<Process>& all) { return all[2]; }

  // The chief, and the ps once the lease of worker/1, which is frozen, has run out.
  void expectEndSoon(std::vector<Process>& all, int exit_code, const std::string& reason) {
    const ProcessResult result = chief(all).wait(kEndsWithin);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_NE(result.err.find(reason), std::string::npos) << result.err;
    EXPECT_EQ(summary()["outcome"], "failed");
    EXPECT_NE(summary()["tasks"][0]["cause"].dump().find(reason), std::string::npos) << summary();
    for (const size_t ps : {0, 1}) {
      const ProcessResult ended = all[ps].wait(kEndsWithin);
      EXPECT_NE(ended.exit_code, -1) << "ps/" << ps << " runs on\n" << ended.err;
    }
  }

  // The pid of the launched chief, once it has frozen itself; 0: it has not within 30 s.
  pid_t frozenChief() const {
    const std::string task = std::string("--task\0", 7) + '0';
    const auto end = std::chrono::steady_clock::now() + Process::kSlowest * seconds(30);
    while (std::chrono::steady_clock::now() < end) {
      for (const std::string& process : leftovers())
        if (process.find("workerd") != std::string::npos &&
            process.find(task) != std::string::npos && isFrozen(std::stoi(process)))
          return std::stoi(process);
      ::poll(nullptr, 0, 5);
    }
    return 0;
  }
};

// A failure ends the job at once, though a pending checkpoint waits for a step that no worker does.
TEST_F(EndingTest, ADivergingLossEndsTheJobAtOnceThoughACheckpointIsUnderWay) {
  std::vector<Process> all = startAll(byHand(diverging(savingAlways())));
  const ProcessResult result = chief(all).wait(kEndsWithin);
  // Whichever worker meets it first ends the job for both; or both meet it at once.
  const bool told = result.err.find("error=\"the job was ended by worker/1") != std::string::npos;
  EXPECT_EQ(result.exit_code, told ? 69 : 1) << result.err;
  EXPECT_NE(result.err.find("training has diverged"), std::string::npos) << result.err;
}

TEST_F(EndingTest, ADivergingLossEndsALaunchedJobAtOnceThoughACheckpointIsUnderWay) {
  const std::string file = writeCluster(diverging(savingAlways()));
  const ProcessResult result = launch(file, {}, kEndsWithin);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(summary()["outcome"], "failed");
  std::string causes;
  const Json summed_up = summary();
  for (const auto& task : summed_up["tasks"]) causes += task["cause"].dump();
  EXPECT_NE(causes.find("training has diverged; try a learning_rate smaller than 1000000"),
            std::string::npos)
      << causes;
  expectNobodyLeft();
}

// The loss stays a number: 4e14 by step 12, were it to go on.
TEST_F(EndingTest, ALossThatGrowsAndGrowsIsNoSuccess) {
  ClusterOptions growing = options(12);
  growing.optimizer = "{gradient_descent: {learning_rate: 1}}";
  const ProcessResult result =
      launch(writeCluster(growing), {"--set", "train.model.loss=mse"}, kEndsWithin);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(summary()["outcome"], "failed");
  EXPECT_NE(result.err.find("training has diverged"), std::string::npos) << result.err;
}

TEST_F(EndingTest, AKilledWorkerEndsTheChiefAtOnceThoughACheckpointIsUnderWay) {
  ClusterOptions saving = savingAlways();
  saving.top_more = "timeouts: {rejoin_seconds: 0}\n";
  std::vector<Process> all = startAll(byHand(saving));
  ASSERT_TRUE(chief(all).waitForOutput("event=checkpoint ", seconds(30))) << chief(all).err();
  all[3].signal(SIGKILL);
  const ProcessResult result = chief(all).wait(kEndsWithin);
  EXPECT_EQ(result.exit_code, 69) << result.err;
  EXPECT_NE(result.err.find("worker/1"), std::string::npos) << result.err;
}

// The step of the cut that is armed is never reached.
TEST_F(EndingTest, AFrozenWorkerEndsTheJobWithTheChiefsReasonThoughACutIsArmed) {
  ClusterOptions saving = savingAlways();
  saving.top_more = "timeouts: {lease_seconds: 2, heartbeat_seconds: 0.5, rejoin_seconds: 0}\n";
  std::vector<Process> all = startAll(byHand(saving));
  ASSERT_TRUE(chief(all).waitForOutput("event=checkpoint ", seconds(30))) << chief(all).err();
  all[3].signal(SIGSTOP);
  expectEndSoon(all, 69, "worker/1 was lost (no heartbeat for 2 s)");
}

TEST_F(EndingTest, AChiefThatFailsBesideAFrozenWorkerEndsTheJobThoughACutIsArmed) {
  ClusterOptions saving = savingAlways();
  saving.top_more = "timeouts: {lease_seconds: 4, rejoin_seconds: 0}\n";
  std::vector<Process> all = startAll(byHand(saving));
  ASSERT_TRUE(chief(all).waitForOutput("event=checkpoint ", seconds(30))) << chief(all).err();
  all[3].signal(SIGSTOP);
  all[1].signal(SIGKILL);
  expectEndSoon(all, 69, "lost ps/1");
}

TEST_F(EndingTest, ASignalDuringTheLastSaveLetsItFinish) {
  std::vector<Process> all = startAll(byHand(options()), failpoints(kTermWhileSaving));
  const ProcessResult result = chief(all).wait(seconds(30));
  EXPECT_NE(result.err.find("event=stopping signal=15"), std::string::npos) << result.err;
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (Process& task : all) EXPECT_EQ(task.wait(seconds(10)).exit_code, 0) << task.err();
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["checkpoint"]["last_step"], 200);
  expectNothingLeft();
}

TEST_F(EndingTest, ASecondSignalDuringTheLastSaveEndsAtOnceAndTheSummarySaysSo) {
  std::vector<Process> all = startAll(byHand(options()), failpoints(kTermAndAVerySlowDisk));
  ASSERT_TRUE(chief(all).waitForOutput("event=stopping signal=15", seconds(30)));
  chief(all).signal(SIGINT);  // another SIGTERM so soon would be the same request
  const ProcessResult result = chief(all).wait(seconds(10));
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
  EXPECT_EQ(summary()["outcome"], "interrupted");
  EXPECT_EQ(summary()["global_step"], 200) << "as far as it is known";
  EXPECT_EQ(summary()["tasks"][0]["exit_code"], 128 + SIGINT);
}

TEST_F(EndingTest, CtrlCDuringTheLastSaveSavesAndIsNoFailure) {
  Process launcher(launchCommand(writeCluster(options())), failpoints(kFreezeWhileSaving),
                   folder_.path());
  const pid_t chief = frozenChief();
  ASSERT_GT(chief, 0) << launcher.err();
  launcher.signal(SIGINT);
  EXPECT_TRUE(launcher.waitForOutput("saving a checkpoint", seconds(10))) << launcher.err();
  ::kill(chief, SIGCONT);
  const ProcessResult result = launcher.wait(seconds(30));
  EXPECT_EQ(result.exit_code, 0) << "all steps were done: there was nothing left to stop\n"
                                 << result.err;
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["checkpoint"]["last_step"], 200);
  const Json summed_up = summary();
  for (const auto& task : summed_up["tasks"]) EXPECT_EQ(task["exit_code"], 0) << task;
  expectNothingLeft();
}

// The main loop must not wait for the answer that the first signal asks for.
TEST_F(EndingTest, ASecondSignalEndsAtOnceWhilePs0IsFrozen) {
  ClusterOptions endless = options(100'000'000);
  endless.top_more = "timeouts: {lease_seconds: 60}\n";
  std::vector<Process> all = startAll(byHand(endless));
  ASSERT_TRUE(chief(all).waitForOutput("event=progress", seconds(30))) << chief(all).err();
  all[0].signal(SIGSTOP);
  chief(all).signal(SIGINT);
  ASSERT_TRUE(chief(all).waitForOutput("event=stopping signal=2", seconds(5))) << chief(all).err();
  chief(all).signal(SIGINT);
  const ProcessResult result = chief(all).wait(seconds(5));
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
}

TEST_F(EndingTest, WhenPs0NeverAnswersTheRequestTheWorkerSaysSoAndEnds) {
  ClusterOptions endless = options(100'000'000);
  endless.top_more = "timeouts: {lease_seconds: 60}\n";
  std::vector<Process> all = startAll(byHand(endless));
  ASSERT_TRUE(chief(all).waitForOutput("event=progress", seconds(30))) << chief(all).err();
  all[0].signal(SIGSTOP);
  chief(all).signal(SIGINT);
  const ProcessResult result = chief(all).wait(seconds(25));
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
  EXPECT_NE(result.err.find("event=stop_refused"), std::string::npos) << result.err;
}

TEST_F(EndingTest, ALastCheckpointThatCannotBeWrittenIsInTheExitCodeAndInTheSummary) {
  std::vector<Process> all =
      startAll(byHand(options()), failpoints("checkpoint.after_check_shards=error"));
  const ProcessResult result = chief(all).wait(seconds(30));
  EXPECT_EQ(result.exit_code, 73) << result.err;
  EXPECT_NE(result.err.find("training is done, but its last checkpoint could not be written"),
            std::string::npos)
      << result.err;
  const Json said = summary();
  EXPECT_EQ(said["outcome"], "failed");
  EXPECT_EQ(said["global_step"], 200);
  EXPECT_EQ(said["tasks"][0]["exit_code"], 73);
  EXPECT_NE(said["tasks"][0]["cause"].dump().find("last checkpoint"), std::string::npos) << said;
  EXPECT_TRUE(said["eval"].contains("accuracy")) << "training itself is done";
}

TEST_F(EndingTest, AJobThatWasStoppedAndCouldNotBeSavedDoesNotSayThatTrainingIsDone) {
  std::vector<Process> all =
      startAll(byHand(options(100'000'000)), failpoints("checkpoint.after_check_shards=error"));
  ASSERT_TRUE(chief(all).waitForOutput("event=progress", seconds(30))) << chief(all).err();
  chief(all).signal(SIGTERM);
  const ProcessResult result = chief(all).wait(seconds(30));
  EXPECT_EQ(result.exit_code, 73) << result.err;
  EXPECT_NE(result.err.find("the job was stopped at step"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("training is done"), std::string::npos) << result.err;
}

TEST_F(EndingTest, APsLostDuringTheLastSaveIsNamedWithItsOwnExitCode) {
  ClusterOptions of_job = options();
  of_job.top_more = "timeouts: {rejoin_seconds: 0}\n";
  std::vector<Process> all =
      startAll(byHand(of_job), {}, failpoints("checkpoint.after_shard_create=kill@2"));
  const ProcessResult result = chief(all).wait(seconds(30));
  EXPECT_EQ(result.exit_code, 69) << result.err;
  EXPECT_NE(result.err.find("last checkpoint could not be written"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("ps/1"), std::string::npos) << result.err;
  EXPECT_EQ(summary()["outcome"], "failed");
  EXPECT_EQ(summary()["tasks"][0]["exit_code"], 69);
}

// Once it has begun: by_hand has a start that fails.
TEST_F(EndingTest, AJobThatFailsByHandReplacesTheSummaryOfTheRunBefore) {
  const std::string file = byHand({});
  for (Process& task : startAll(file)) EXPECT_EQ(task.wait(seconds(30)).exit_code, 0) << task.err();
  ASSERT_EQ(summary()["outcome"], "done");
  ClusterOptions second;
  second.steps = 100'000'000;
  second.train_more = "  report: {every_steps: 1}\n";
  std::vector<Process> all = startAll(byHand(diverging(second)));
  const ProcessResult result = chief(all).wait(seconds(30));
  EXPECT_TRUE(result.exit_code == 1 || result.exit_code == 69) << result.exit_code << result.err;
  EXPECT_EQ(summary()["outcome"], "failed");
  EXPECT_EQ(summary()["tasks"][0]["exit_code"], result.exit_code);
}

// A job that is done already has no first step and no loss to tell of.
TEST_F(EndingTest, AFinishedJobThatIsRunAgainReportsNoNumbersThatItDidNotMeasure) {
  const std::string file = writeCluster(options());
  ASSERT_EQ(launch(file).exit_code, 0);
  EXPECT_GT(summary()["first_step_seconds"].asDouble(), 0.0);
  std::filesystem::remove(folder_.path() + "/runs/job/summary.json");  // or that one stays
  const ProcessResult again = launch(file);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(summary()["global_step"], 200);
  for (const char* key :
       {"first_step_seconds", "final_loss", "steps_per_second", "examples_per_second"})
    EXPECT_EQ(summary()[key], nullptr) << key;
  EXPECT_EQ(again.out.find("steps/s"), std::string::npos) << again.out;

  std::vector<Process> all = startAll(byHand(options()));
  const ProcessResult by_hand = chief(all).wait(seconds(30));
  EXPECT_EQ(by_hand.exit_code, 0) << by_hand.err;
  EXPECT_EQ(by_hand.out.find("loss"), std::string::npos) << by_hand.out;
  EXPECT_EQ(summary()["final_loss"], nullptr);
}

// Under dtf-launch: a task that dies or freezes at the end does not fail a job that is trained,
// saved and evaluated. DTF_ENDINGS: how often the first test runs its job.
class LaunchedEndingTest : public EndingTest {
 protected:
  static ClusterOptions options(const std::string& durability = "checkpoint") {
    ClusterOptions options = EndingTest::options();
    options.top_more =
        "timeouts: {lease_seconds: 5, heartbeat_seconds: 0.5}\ndurability: " + durability + "\n";
    return options;
  }
  static int runs() {
    const char* text = std::getenv("DTF_ENDINGS");
    return text == nullptr ? 1 : std::atoi(text);
  }
  // Starts the job of `file` afresh.
  Process start(const std::string& file, const std::string& plan) {
    return Process(launchCommand(file, {"--json", "--fresh"}), failpoints(plan), folder_.path());
  }
  // Signals the tasks of launch.json with these names; empty: all.
  void signalTasks(const std::vector<std::string>& names, int number) {
    const Json record = Json::parse(folder_.read("runs/job/launch.json"));
    for (const auto& task : record["tasks"]) {
      const bool is_meant =
          names.empty() || std::find(names.begin(), names.end(), task["name"]) != names.end();
      if (is_meant) {
        EXPECT_EQ(::kill(static_cast<pid_t>(task["pid"].asInt()), number), 0) << "it has ended";
      }
    }
  }
  // kEnding is far below timeouts.start_seconds and finish_seconds, which only a hang reaches.
  void expectDone(Process& launcher) {
    const ProcessResult result = launcher.wait(kEnding);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(summary()["outcome"], "done") << summary();
    EXPECT_EQ(summary()["global_step"], 200);
    EXPECT_TRUE(summary()["eval"].contains("accuracy")) << summary();
    expectNobodyLeft();
  }
  std::string restarts() const {
    std::string text;
    const Json& summed_up = summary();
    for (const auto& task : summed_up["tasks"])
      text += task["name"].asString() + ":" + task["restarts"].dump() + " ";
    return text;
  }
  static constexpr auto kEnding = seconds(45);
};

TEST_F(LaunchedEndingTest, NobodyIsStartedAgainForAChiefThatIsKilledBehindItsResult) {
  const std::string file = writeCluster(options());
  for (int run = 0; run < runs(); ++run) {
    Process launcher = start(file, "ending.after_result=kill");
    expectDone(launcher);
    EXPECT_EQ(restarts(), "ps/0:0 ps/1:0 worker/0:0 worker/1:0 ");
  }
}

TEST_F(LaunchedEndingTest, AChiefThatStandsStillBehindItsResultHoldsUpNobody) {
  const std::string file = writeCluster(options());
  Process launcher = start(file, "ending.after_result=stop");
  expectDone(launcher);
  EXPECT_EQ(restarts(), "ps/0:0 ps/1:0 worker/0:0 worker/1:0 ");
}

// Each worker freezes after it has left; the ps have ended by then, or do so soon.
TEST_F(LaunchedEndingTest, WorkersThatStandStillWhenTheyHaveLeftHoldUpNobody) {
  Process launcher = start(writeCluster(options()), "ending.after_finish=stop");
  expectDone(launcher);
}

// A ps that is started again does not wait for a worker that has left.
TEST_F(LaunchedEndingTest, TheChiefAndAPsMayDieInTheLastEvaluation) {
  for (const char* durability : {"checkpoint", "{snapshot: {every_steps: 50}}", "replica"}) {
    Process launcher =
        start(writeCluster(options(durability)), "ending.in_last_evaluation=sleep:4000");
    ASSERT_TRUE(launcher.waitForOutput(R"("task":"worker/1","exit_code":0)", kEnding))
        << launcher.out();
    signalTasks({"worker/0", "ps/0"}, SIGKILL);
    expectDone(launcher);
    EXPECT_EQ(restarts(), "ps/0:1 ps/1:0 worker/0:1 worker/1:0 ") << durability;
  }
}

TEST_F(LaunchedEndingTest, APsThatStandsStillBehindTheResultHoldsUpNobody) {
  Process launcher = start(writeCluster(options()), "ending.after_result=sleep:4000");
  ASSERT_TRUE(launcher.waitForOutput(R"("event":"evaluation")", kEnding)) << launcher.err();
  signalTasks({"ps/1"}, SIGSTOP);
  expectDone(launcher);
  EXPECT_EQ(restarts(), "ps/0:0 ps/1:0 worker/0:0 worker/1:0 ");
}

// All tasks at once, in the middle of the training.
TEST_F(LaunchedEndingTest, AJobThatIsLostAsAWholeGoesOnFromItsSnapshotOrEndsWithTheRemedy) {
  for (const bool is_kept : {true, false}) {
    ClusterOptions lost = options(is_kept ? "{snapshot: {every_steps: 50}}" : "replica");
    lost.steps = 1000;
    lost.train_more = "  report: {every_steps: 100}\n";
    Process launcher = start(writeCluster(lost), "training.in_step=sleep:4");
    // By then a snapshot of step 50 is whole, or 100.
    ASSERT_TRUE(launcher.waitForOutput(R"("step":200,)", kEnding)) << launcher.out();
    signalTasks({}, SIGKILL);
    const ProcessResult result = launcher.wait(kEnding);
    EXPECT_EQ(result.exit_code, is_kept ? 0 : 65) << result.err;
    const char* const said = is_kept ? "to the snapshot of step" : "add `checkpoint:`";
    EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
    if (is_kept) {
      EXPECT_FALSE(summary().contains("checkpoint")) << "the job keeps none: " << summary();
    }
    expectNobodyLeft();
  }
}

}  // namespace dtf::testing
