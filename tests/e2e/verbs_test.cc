// dtf-launch status, logs and stop, beside a job that runs.

#include <signal.h>
#include <unistd.h>

#include <filesystem>

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
  EXPECT_EQ(stop.exit_code, 3) << stop.err;
  EXPECT_NE(stop.out.find("not running"), std::string::npos) << stop.out;
  const ProcessResult logs = verb("logs");
  EXPECT_EQ(logs.exit_code, 65) << logs.out;
  EXPECT_NE(logs.err.find("no log in"), std::string::npos) << logs.err;
}

TEST_F(VerbsTest, ExplainShowsTheModelAndItsPlacementWithoutStartingAnything) {
  const ProcessResult text = verb("explain");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("softmax/weights"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("/job:ps/task:0"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("input scaling: features / 255"), std::string::npos) << text.out;
  const nlohmann::json said = nlohmann::json::parse(verb("explain", {"--json"}).out);
  EXPECT_EQ(said["parameters"], 7850);
  EXPECT_EQ(said["layers"].back()["output"], nlohmann::json::array({10}));
  EXPECT_EQ(said["variables"].size(), 2u);
  EXPECT_EQ(verb("explain", {"--set", "train.model.layers=[dense: {units: 10}]"}).exit_code, 78);
  EXPECT_EQ(verb("status").exit_code, 3) << "nothing was started";
}

TEST_F(VerbsTest, StatusAndLogsOfAJobThatRunsAndStopSavesIt) {
  Process launcher(launchCommand(file_), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss ", seconds(30))) << launcher.err();

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
  EXPECT_NE(logs.out.find("worker/1 | "), std::string::npos) << logs.out;
  EXPECT_NE(logs.out.find("event=joined"), std::string::npos) << logs.out;
  EXPECT_EQ(logs.out.find("ps/0 | "), std::string::npos) << "only the one that was named";
  EXPECT_EQ(verb("logs", {"worker/7"}).exit_code, 2);
  const std::string events = verb("logs", {"worker/1", "--json"}).out;
  const nlohmann::json event = nlohmann::json::parse(events.substr(0, events.find('\n')));
  const std::string line = event["line"];
  EXPECT_TRUE(line.starts_with(event["time"].get<std::string>())) << event;

  const ProcessResult stop = verb("stop");
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  EXPECT_TRUE(stop.out.starts_with("job: stopped at step ")) << stop.out;
  EXPECT_TRUE(stop.out.ends_with(", saved\n")) << stop.out;
  // The launcher itself gives the folder free just before its own end.
  for (const std::string& process : leftovers())
    EXPECT_NE(process.find("dtf-launch"), std::string::npos) << "stop waits for the end";
  EXPECT_EQ(launcher.wait(seconds(1)).exit_code, 0) << "as a daemon that is told to stop";
  EXPECT_EQ(summary()["outcome"], "stopped");
  EXPECT_EQ(summary()["checkpoint"]["last_step"], summary()["global_step"]) << "it was saved";
  const ProcessResult after = verb("status");
  EXPECT_EQ(after.exit_code, 3);
  EXPECT_NE(after.out.find("last run    stopped at step "), std::string::npos) << after.out;
  const ProcessResult again = verb("stop");
  EXPECT_EQ(again.exit_code, 3) << "nothing was stopped";
  EXPECT_NE(again.out.find("; its last run: stopped at step "), std::string::npos) << again.out;
  EXPECT_NE(verb("logs").out.find("ps/0     | "), std::string::npos) << "they outlive the job";
  expectNothingLeft();
}

// "runs/job" is below the folder that the job was started from, which a person at another terminal
// is not in.
TEST_F(VerbsTest, FindTheRunFromAnyFolderAndADetachedJobGoesOn) {
  const std::string cluster = folder_.read("job.yaml");
  const size_t run_dir = cluster.find("run_dir:");
  const std::string file = folder_.write(
      "here.yaml", std::string(cluster).erase(run_dir, cluster.find('\n', run_dir) + 1 - run_dir));
  const auto from = [this, &file](std::vector<std::string> words, const std::string& folder) {
    words.insert(words.begin(), binary("dtf-launch"));
    words.push_back(file);
    return runProcess(std::move(words), seconds(60), {}, folder);
  };
  const ProcessResult up = from({"up", "-d"}, folder_.path());
  ASSERT_EQ(up.exit_code, 0) << up.err;
  EXPECT_NE(up.out.find("job: runs, dtf-launch has pid "), std::string::npos) << up.out;
  const ProcessResult status = from({"status", "--json"}, "/");
  EXPECT_EQ(status.exit_code, 0) << status.out;
  EXPECT_EQ(nlohmann::json::parse(status.out)["running"], true);
  Process attached({binary("dtf-launch"), "attach", file}, {}, "/");
  ASSERT_TRUE(attached.waitForOutput("all 4 tasks are ready", seconds(30))) << attached.err();
  const ProcessResult second = from({"up", "-d"}, folder_.path());
  EXPECT_EQ(second.exit_code, 69) << second.err;
  EXPECT_NE(second.err.find("is in use by dtf-launch, pid "), std::string::npos) << second.err;
  EXPECT_NE(from({"logs"}, "/").out.find("event=joined"), std::string::npos)
      << "of the job that runs, not of the launch that was refused";
  const ProcessResult stop = from({"stop", "--json"}, "/");
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  const nlohmann::json said = nlohmann::json::parse(stop.out);
  EXPECT_EQ(said["was_running"], true);
  EXPECT_EQ(said["summary"]["outcome"], "stopped");
  EXPECT_EQ(attached.wait(seconds(10)).exit_code, 0) << "the job's";
  EXPECT_EQ(from({"logs", "--json"}, "/").exit_code, 0);
  const ProcessResult gone = from({"attach", "--json"}, "/");
  EXPECT_EQ(gone.exit_code, 69);
  EXPECT_EQ(nlohmann::json::parse(gone.out)["event"], "error");
  EXPECT_EQ(from({"stop"}, "/").exit_code, 3);
  expectNothingLeft();
}

TEST_F(VerbsTest, StopSaysThatAJobWithoutCheckpointsEndedUnsaved) {
  ClusterOptions unsaved = options();
  unsaved.train_more.clear();
  writeCluster(unsaved);
  Process launcher(launchCommand(file_), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss ", seconds(30))) << launcher.err();
  const ProcessResult stop = verb("stop");
  EXPECT_EQ(stop.exit_code, 128 + SIGTERM) << stop.out << stop.err;
  EXPECT_TRUE(stop.out.starts_with("job: interrupted at step ")) << stop.out;
  EXPECT_TRUE(stop.out.ends_with(", not saved\n")) << stop.out;
  EXPECT_EQ(launcher.wait(seconds(5)).exit_code, stop.exit_code);
}

// In a pipe, of a job that has a terminal of its own, and so no log of what it says.
TEST_F(VerbsTest, AttachInAPipeShowsTheLinesThatStay) {
  ClusterOptions evaluated = options();
  evaluated.train_more += "  eval: {every_steps: 200}\n";
  writeCluster(evaluated);
  Process launcher(launchCommand(file_), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss ", seconds(30))) << launcher.err();
  Process attached({binary("dtf-launch"), "attach", file_}, {}, folder_.path());
  EXPECT_TRUE(attached.waitForOutput("dtf-launch: evaluation at step ", seconds(30)))
      << attached.err();
  EXPECT_TRUE(attached.waitForOutput("examples/s", seconds(30))) << attached.err();
  EXPECT_EQ(verb("stop").exit_code, 0);
  EXPECT_EQ(attached.wait(seconds(10)).exit_code, 0) << attached.err();
}

TEST_F(VerbsTest, ADetachedLaunchAnswersWithOneJsonObject) {
  const ProcessResult up = verb("up", {"-d", "--json"});
  ASSERT_EQ(up.exit_code, 0) << up.err;
  const nlohmann::json said = nlohmann::json::parse(up.out);
  EXPECT_EQ(said["event"], "detached");
  EXPECT_EQ(said["run_dir"], folder_.path() + "/runs/job");
  const nlohmann::json status = nlohmann::json::parse(verb("status", {"--json"}).out);
  EXPECT_EQ(status["running"], true);
  EXPECT_NE(status["progress"]["line"].get<std::string>().find("worker 2/2"), std::string::npos)
      << "up -d has said that every task is ready\n"
      << status;
  const ProcessResult refused = verb("up", {"-d", "--json"});
  EXPECT_EQ(refused.exit_code, 69) << refused.err;
  EXPECT_EQ(nlohmann::json::parse(refused.out)["exit_code"], 69) << refused.out;
  EXPECT_TRUE(said["pid"].is_number_unsigned()) << up.out;
  EXPECT_EQ(verb("stop").exit_code, 0);
  expectNothingLeft();
}

// Tasks that are never ready: a person who waits for them presses Ctrl-C.
TEST_F(VerbsTest, CtrlCBeforeADetachedJobIsReadyStopsIt) {
  for (const char* program : {"psd", "workerd"}) {
    const std::string file = folder_.write(program, "#!/bin/sh\nexec sleep 1000\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  Process up({binary("dtf-launch"), "up", "-d", file_, "--bin-dir", folder_.path()}, {},
             folder_.path());
  const std::string log = folder_.path() + "/runs/job/logs/worker-1.1.log";
  for (int i = 0; i < 3000 && !std::filesystem::exists(log); ++i) ::usleep(10000);
  ASSERT_TRUE(std::filesystem::exists(log)) << up.err();
  up.signal(SIGINT);
  const ProcessResult result = up.wait(seconds(10));
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
  EXPECT_EQ(verb("status").exit_code, 3) << "nothing is left running";
  expectNobodyLeft();
}

TEST_F(VerbsTest, ABuildFolderIsABinDir) {
  const std::filesystem::path psd = binary("psd");
  const std::string build = psd.parent_path().parent_path().parent_path();
  const ProcessResult plan = verb("up", {"--dry-run", "--bin-dir", build});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_NE(plan.out.find(psd.string()), std::string::npos) << plan.out;
}

TEST_F(VerbsTest, AResultThatStdoutDoesNotTakeIsNoSuccess) {
  for (const std::string words : {"check", "status", "up --dry-run", "up --set train.steps=5"}) {
    const ProcessResult result = runProcess(
        {"/bin/sh", "-c", binary("dtf-launch") + " " + words + " " + file_ + " >/dev/full"},
        seconds(60), {}, folder_.path());
    EXPECT_EQ(result.exit_code, 73) << words << "\n" << result.err;
  }
}

}  // namespace dtf::testing
