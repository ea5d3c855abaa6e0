// Checkpoints of a job with default settings, and with settings of its own.

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

namespace fs = std::filesystem;
using std::chrono::seconds;

class KeptTest : public ClusterTest {
 protected:
  // A file without checkpoint settings.
  static ClusterOptions plain(int steps) {
    ClusterOptions options;
    options.mode = "sync";
    options.steps = steps;
    options.saves_by_default = true;
    return options;
  }
  static ClusterOptions evaluated(int steps, const std::string& more) {
    ClusterOptions options = plain(steps);
    options.train_more = "  eval: {every_steps: 10}\n" + more;
    return options;
  }

  ProcessResult verb(const std::string& name, const std::string& file,
                     std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {binary("dtf-launch"), name, file};
    argv.insert(argv.end(), more.begin(), more.end());
    return runProcess(std::move(argv), seconds(60), {}, folder_.path());
  }

  fs::path run(const std::string& name = "job") const {
    return fs::path(folder_.path()) / "runs" / name;
  }
  std::vector<uint64_t> steps(const std::string& name = "job") const {
    std::vector<uint64_t> found;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(run(name) / "checkpoints", none)) {
      const std::string folder = entry.path().filename();
      if (folder.starts_with("step-")) found.push_back(std::stoull(folder.substr(5)));
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  // The evaluations that the chief remembers.
  Json evaluations() {
    return Json::parse(folder_.read("runs/job/checkpoints/evaluations.json"))["evaluations"];
  }
};

TEST_F(KeptTest, AJobThatIsDoneIsSavedUnlessTheFileSaysNone) {
  const std::string file = writeCluster(plain(40));
  ASSERT_EQ(launch(file).exit_code, 0);
  EXPECT_EQ(steps(), std::vector<uint64_t>{40});
  EXPECT_EQ(summary()["checkpoint"]["last_step"], 40);
  const double loss = summary()["eval"]["loss"].asDouble();
  const ProcessResult evaluated = verb("eval", file, {"--json"});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(Json::parse(evaluated.out)["loss"].asDouble(), loss);
  EXPECT_EQ(verb("predict", file, {"--output", "out.csv"}).exit_code, 0);
  EXPECT_EQ(verb("export", file, {"--to", "model.npz"}).exit_code, 0);

  ClusterOptions none = plain(40);
  none.train_more = "  checkpoint: none\n";
  const std::string unsaved = writeCluster(none, "none");
  for (int turn = 0; turn < 2; ++turn) {
    const ProcessResult trained = launch(unsaved);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    EXPECT_FALSE(fs::exists(run("none") / "checkpoints"));
    EXPECT_EQ(trained.out.find("done already"), std::string::npos) << trained.out;
  }
}

TEST_F(KeptTest, AFinishedJobSaysSoAndKeepsItsSummary) {
  const std::string file = writeCluster(plain(40));
  ASSERT_EQ(launch(file).exit_code, 0);
  const std::string before = folder_.read("runs/job/summary.json");
  const ProcessResult again = launch(file);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("job: done already at step 40 (20"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("--fresh begins anew, --set train.steps=80 goes on"), std::string::npos)
      << again.out;
  EXPECT_EQ(folder_.read("runs/job/summary.json"), before);
  const ProcessResult json = launch(file, {"--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  std::istringstream lines(json.out);
  std::vector<std::string> events;
  for (std::string line; std::getline(lines, line);)
    events.push_back(Json::parse(line).stringAt("event"));
  EXPECT_EQ(events, (std::vector<std::string>{"already_done", "summary"})) << json.out;
  const ProcessResult more = launch(file, {"--set", "train.steps=60"});
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_NE(more.err.find("going on from the checkpoint of step 40 of 60"), std::string::npos)
      << more.err;
  EXPECT_EQ(summary()["global_step"], 60);
}

// The tasks find out whether there is something to train, and report the changes.
TEST_F(KeptTest, AFinishedJobWhoseSettingsChangedIsStarted) {
  const std::string file = writeCluster(plain(40));
  ASSERT_EQ(launch(file).exit_code, 0);
  const ProcessResult again =
      launch(file, {"--set", "train.optimizer.gradient_descent.learning_rate=0.25"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out.find("nothing to do"), std::string::npos) << again.out;
  EXPECT_NE(again.err.find("done already at step 40 of 40"), std::string::npos) << again.err;
}

TEST_F(KeptTest, ARunThatKeepsNothingSetsEarlierCheckpointsAside) {
  const std::string file = writeCluster(plain(40));
  ASSERT_EQ(launch(file).exit_code, 0);
  ASSERT_EQ(launch(file, {"--set", "train.checkpoint=none"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(run() / "checkpoints.old-1"));
  EXPECT_NE(verb("eval", file, {}).exit_code, 0) << "no model of this run is on the disk";
}

// The summary was lost with the process that was to write it.
TEST_F(KeptTest, AFinishedJobWithoutItsSummaryReportsAgain) {
  const std::string file = writeCluster(plain(40));
  ASSERT_EQ(launch(file).exit_code, 0);
  const Json before = summary();
  fs::remove(run() / "summary.json");
  const ProcessResult again = launch(file);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("done already at step 40 of 40"), std::string::npos) << again.err;
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["parameters_digest"], before["parameters_digest"]);
  EXPECT_EQ(summary()["eval"]["loss"], before["eval"]["loss"]);
}

TEST_F(KeptTest, CtrlCAndStopSave) {
  const std::string file = writeCluster(plain(kEndless));
  Process launcher(launchCommand(file), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss", kPatience)) << launcher.err();
  launcher.signal(SIGINT);
  const ProcessResult interrupted = launcher.wait(seconds(30));
  EXPECT_EQ(interrupted.exit_code, 128 + SIGINT) << interrupted.err;
  EXPECT_EQ(summary()["outcome"], "stopped");
  const uint64_t reached = summary()["global_step"].asUint64();
  EXPECT_EQ(steps().back(), reached);

  const ProcessResult again = verb("up", file, {"-d"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const ProcessResult stopped = verb("stop", file);
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err << stopped.out;
  EXPECT_EQ(summary()["outcome"], "stopped");
  EXPECT_GE(summary()["global_step"].asUint64(), reached) << "it went on";
  EXPECT_EQ(steps().back(), summary()["global_step"].asUint64());
}

TEST_F(KeptTest, AJobThatSavesNothingSaysSoWhenItIsStopped) {
  ClusterOptions none = plain(kEndless);
  none.train_more = "  checkpoint: none\n";
  const std::string file = writeCluster(none);
  Process launcher(launchCommand(file), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss", kPatience)) << launcher.err();
  launcher.signal(SIGINT);
  const ProcessResult interrupted = launcher.wait(seconds(30));
  EXPECT_EQ(interrupted.exit_code, 128 + SIGINT) << interrupted.err;
  EXPECT_NE(interrupted.err.find(
                "SIGINT: stopping the tasks, nothing is saved ('checkpoint: none'); once more"),
            std::string::npos)
      << interrupted.err;
  EXPECT_NE(interrupted.out.find("  checkpoint none: the job has 'checkpoint: none'"),
            std::string::npos)
      << interrupted.out;
  ASSERT_EQ(verb("up", file, {"-d"}).exit_code, 0);
  const ProcessResult stopped = verb("stop", file);
  EXPECT_NE(stopped.out.find(", not saved: the job has 'checkpoint: none'"), std::string::npos)
      << stopped.out;
}

// Nobody has said that the ps see the chief's run directory: here each has another one.
TEST_F(KeptTest, ByHandTheChiefHasTheFilesOfAllPs) {
  ClusterOptions by_hand = plain(kEndless);
  by_hand.ports = freePorts(4);
  const std::string file = writeCluster(by_hand);
  std::vector<Process> tasks;
  for (const int index : {0, 1})
    tasks.push_back(startTask(file, "ps", index,
                              {"--run-dir", folder_.path() + "/ps" + std::to_string(index)}));
  for (const int index : {0, 1}) tasks.push_back(startTask(file, "worker", index));
  ASSERT_TRUE(tasks[kChiefTask].waitForOutput("event=progress", kPatience))
      << tasks[kChiefTask].err();
  tasks[1].signal(SIGTERM);
  for (Process& task : tasks) {
    const ProcessResult result = task.wait(seconds(30));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(summary()["outcome"], "stopped");
  EXPECT_EQ(steps().back(), summary()["global_step"].asUint64());
  for (const char* ps : {"/ps0", "/ps1"})
    EXPECT_FALSE(fs::exists(folder_.path() + ps + "/checkpoints")) << ps;
}

TEST_F(KeptTest, ByHandAFinishedJobSaysSoAndKeepsItsSummary) {
  ClusterOptions by_hand = plain(40);
  by_hand.ports = freePorts(4);
  const std::string file = writeCluster(by_hand);
  for (const bool is_first : {true, false}) {
    const std::string before = is_first ? "" : folder_.read("runs/job/summary.json");
    std::vector<Process> tasks = startFour(file);
    for (size_t i = 0; i < tasks.size(); ++i) {
      const ProcessResult result = tasks[i].wait(seconds(30));
      EXPECT_EQ(result.exit_code, 0) << result.err;
      const bool says_so = result.out.find("done already: nothing to do") != std::string::npos;
      EXPECT_EQ(says_so, i == kChiefTask && !is_first) << result.out;
    }
    const std::string after = folder_.read("runs/job/summary.json");
    EXPECT_EQ(after == before, !is_first) << after;
  }
}

TEST_F(KeptTest, EveryStepsAreMultiples) {
  ClusterOptions options = plain(600);
  options.train_more = "  checkpoint: {every_steps: 50, keep: 0}\n";
  ASSERT_EQ(launch(writeCluster(options)).exit_code, 0);
  const std::vector<uint64_t> saved = steps();
  EXPECT_GE(saved.size(), 2u);
  EXPECT_EQ(saved.back(), 600u);
  for (const uint64_t step : saved) EXPECT_EQ(step % 50, 0u) << step;
}

TEST_F(KeptTest, TheBestCheckpointStaysAndIsUsedWhenItIsAskedFor) {
  for (const std::string mode : {"sync", "async", "with a backup worker"}) {
    SCOPED_TRACE(mode);
    ClusterOptions options =
        evaluated(60, "  checkpoint: {every_steps: 1000, keep: 1, keep_best: loss}\n");
    options.mode = mode == "async" ? "async" : "sync";
    if (mode == "with a backup worker") options.replication_more = ", replicas_to_aggregate: 1";
    const std::string file = writeCluster(options);
    ASSERT_EQ(launch(file, {"--fresh"}).exit_code, 0);
    // From now on it unlearns.
    const ProcessResult worse =
        launch(file, {"--set", "train.steps=120", "--set",
                      "train.optimizer={gradient_descent: {learning_rate: 500}}"});
    ASSERT_EQ(worse.exit_code, 0) << worse.err;
    const Json best = summary()["best"];
    ASSERT_TRUE(best.isObject()) << summary();
    const uint64_t step = best["checkpoint"].asUint64();
    EXPECT_LE(step, 60u);
    EXPECT_EQ(steps(), (std::vector<uint64_t>{step, summary()["global_step"].asUint64()}));
    EXPECT_LT(best["loss"].asDouble(), summary()["eval"]["loss"].asDouble());
    for (const Json& past : evaluations()) {
      EXPECT_GE(past["values"]["loss"].asDouble(), best["loss"].asDouble());
      if (!past.contains("checkpoint")) continue;  // it was replaced by a newer one
      EXPECT_TRUE(mode != "sync" || past["checkpoint"] == past["step"]) << past;
      EXPECT_GE(past["checkpoint"].asUint64(), past["step"].asUint64()) << past;
    }
    const Json used = Json::parse(verb("eval", file, {"--best", "--json"}).out);
    EXPECT_EQ(used["step"], step);
    const bool has_same_bits = used["loss"] == best["loss"];
    EXPECT_TRUE(has_same_bits || mode != "sync") << used << best;
    const Json newest = Json::parse(verb("eval", file, {"--json"}).out);
    EXPECT_EQ(newest["step"], summary()["global_step"]);
  }
}

TEST_F(KeptTest, TheBestOfAJobThatKeepsNoneIsRefused) {
  const std::string file = writeCluster(plain(20));
  ASSERT_EQ(launch(file).exit_code, 0);
  const ProcessResult refused = verb("eval", file, {"--best"});
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("add checkpoint: {keep_best: METRIC}"), std::string::npos)
      << refused.err;
}

// No change is large enough to be an improvement.
constexpr char kNeverImproves[] =
    "  early_stopping: {metric: accuracy, patience: 3, min_delta: 10}\n";

TEST_F(KeptTest, AJobThatNoLongerImprovesEndsEarlyAndIsDone) {
  for (const int ps : {2, 0}) {
    SCOPED_TRACE(std::to_string(ps) + " ps");
    ClusterOptions options = evaluated(kEndless, kNeverImproves);
    if (ps == 0) options.ps = options.workers = 1;
    std::string file = writeCluster(options);
    if (ps == 0) {
      std::string text = folder_.read("job.yaml");
      const size_t from = text.find("  ps: ");
      text.erase(from, text.find('\n', from) + 1 - from);
      file = folder_.write("job.yaml", text);
    }
    const ProcessResult ended = launch(file, {"--fresh"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_EQ(summary()["outcome"], "done");
    const std::string why = summary().stringOr("ended_early", "");
    EXPECT_EQ(why.find("accuracy has not improved on "), 0u) << why;
    EXPECT_NE(why.find(" of step 10 in 3 evaluations"), std::string::npos) << why;
    const uint64_t reached = summary()["global_step"].asUint64();
    EXPECT_GE(reached, 40u);
    // Asynchronous workers go on while the chief evaluates.
    if (ps == 0) {
      EXPECT_LT(reached, 50u) << "before the next evaluation";
    }
    EXPECT_EQ(steps().back(), reached);
    EXPECT_NE(ended.out.find("  ended      early: accuracy"), std::string::npos) << ended.out;
    for (const Json& task : summary()["tasks"]) EXPECT_EQ(task["exit_code"], 0) << task;
    const ProcessResult again = launch(file);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_NE(again.out.find("--set train.early_stopping.patience=6 goes on"), std::string::npos)
        << again.out;
    // More steps, or epochs, don't help.
    const ProcessResult longer = launch(file, {"--set", "train.steps=200000000"});
    EXPECT_EQ(longer.exit_code, 0) << longer.err;
    const std::string said = fmt::format("the job ended early at step {}, as accuracy", reached);
    for (const std::string& part : {said, std::string("raise train.early_stopping.patience")})
      EXPECT_NE((longer.out + longer.err).find(part), std::string::npos) << longer.err;
  }
}

TEST_F(KeptTest, ByHandAJobThatHasEndedEarlyIsDoneAndTrainsNothingMore) {
  for (const char* mode : {"sync", "async"}) {
    SCOPED_TRACE(mode);
    ClusterOptions options = evaluated(kEndless, kNeverImproves);
    options.mode = mode;
    options.ports = freePorts(4);
    const std::string file = writeCluster(options, mode);
    std::string before;
    for (const bool is_first : {true, false}) {
      std::vector<Process> tasks = startFour(file);
      for (size_t i = 0; i < tasks.size(); ++i) {
        const ProcessResult result = tasks[i].wait(seconds(30));
        EXPECT_EQ(result.exit_code, 0) << result.err;
        const bool says_so = result.out.find("done already: nothing to do") != std::string::npos;
        EXPECT_EQ(says_so, i == kChiefTask && !is_first) << result.out;
      }
      const std::string after = folder_.read("runs/" + std::string(mode) + "/summary.json");
      EXPECT_EQ(Json::parse(after)["outcome"], "done");
      EXPECT_EQ(steps(mode).back(), Json::parse(after)["global_step"].asUint64());
      EXPECT_TRUE(is_first || after == before) << after;
      before = after;
    }
  }
}

TEST_F(KeptTest, AJobThatGoesOnRemembersItsEvaluations) {
  const std::string file = writeCluster(
      evaluated(kEndless, "  early_stopping: {metric: loss, patience: 4, min_delta: 1000}\n"));
  ASSERT_EQ(launch(file, {"--set", "train.steps=25"}).exit_code, 0);
  const ProcessResult rest = launch(file);
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  // Evaluated at 10, 20, 25, 30 and 40.
  EXPECT_GE(summary()["global_step"].asUint64(), 40u);
  EXPECT_LT(summary()["global_step"].asUint64(), 50u);
}

TEST_F(KeptTest, TheRunHasTheFileAsItWasUnderstood) {
  const std::string file = writeCluster(plain(20));
  ASSERT_EQ(launch(file, {"--set", "train.steps=30"}).exit_code, 0);
  const std::string text = folder_.read("runs/job/job.yaml");
  for (const char* part : {"# dtf ", "# data.train: content: ", "# data.eval: 200 examples",
                           "steps: 30\n", "gather: true"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const ProcessResult checked = verb("check", folder_.path() + "/runs/job/job.yaml");
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
}

}  // namespace dtf::testing
