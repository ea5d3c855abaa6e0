// dtf-launch status, attach, logs and stop, from folders that have nothing to do with the job, and
// of jobs that dtf-launch did not start.

#include "common/base/json.h"
#include "tests/e2e/verbs_fixture.h"

namespace dtf::testing {

using FoundRunsTest = VerbsTest;

TEST_F(FoundRunsTest, StatusAsksTasksThatOnlyTheCommandLineNamed) {
  std::vector<std::string> command = launchCommand(file_);
  for (const char* word :
       {"--set", "cluster.worker=[localhost:auto, localhost:auto, localhost:auto]"})
    command.push_back(word);
  Process launcher(command, {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss ", seconds(30))) << launcher.err();
  statusWith("worker/2 +pid [0-9]+ +running +step [0-9]+");
  launcher.signal(SIGTERM);
  EXPECT_EQ(launcher.wait(seconds(30)).exit_code, 0) << launcher.err();
}

// "runs/job" is below the folder that the job was started from.
TEST_F(FoundRunsTest, FindTheRunFromAnyFolderAndADetachedJobGoesOn) {
  const std::string cluster = folder_.read("job.yaml");
  const size_t run_dir = cluster.find("run_dir:");
  const std::string file = folder_.write(
      "here.yaml", std::string(cluster).erase(run_dir, cluster.find('\n', run_dir) + 1 - run_dir));
  const auto from = [&file](std::vector<std::string> words, const std::string& folder) {
    words.insert(words.begin(), binary("dtf-launch"));
    words.push_back(file);
    return runProcess(std::move(words), seconds(60), {}, folder);
  };
  const ProcessResult up = from({"up", "-d"}, folder_.path());
  ASSERT_EQ(up.exit_code, 0) << up.err;
  EXPECT_NE(up.out.find("job: runs, dtf-launch has pid "), std::string::npos) << up.out;
  const ProcessResult status = from({"status", "--json"}, "/");
  EXPECT_EQ(Json::parse(status.out)["running"], true) << status.exit_code;
  Process attached({binary("dtf-launch"), "attach", file}, {}, "/");
  ASSERT_TRUE(attached.waitForOutput("all 4 tasks are ready", seconds(30))) << attached.err();
  const ProcessResult second = from({"up", "-d"}, folder_.path());
  EXPECT_EQ(second.exit_code, 69) << second.err;
  EXPECT_NE(second.err.find("is in use by dtf-launch, pid "), std::string::npos) << second.err;
  EXPECT_NE(from({"logs"}, "/").out.find("event=joined"), std::string::npos)
      << "of the job that runs, not of the launch that was refused";
  const ProcessResult stop = from({"stop", "--json"}, "/");
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  const Json said = Json::parse(stop.out);
  EXPECT_EQ(said["was_running"], true);
  EXPECT_EQ(said["summary"]["outcome"], "stopped");
  EXPECT_EQ(attached.wait(seconds(10)).exit_code, 0) << "the job's";
  EXPECT_EQ(from({"logs", "--json"}, "/").exit_code, 0);
  const ProcessResult gone = from({"attach", "--json"}, "/");
  EXPECT_EQ(gone.exit_code, 69);
  EXPECT_EQ(Json::parse(gone.out)["event"], "error");
  EXPECT_EQ(from({"stop"}, "/").exit_code, 3);
  expectNothingLeft();
}

TEST_F(FoundRunsTest, TheCommandsThatADetachedJobPrintsWorkAsPrinted) {
  const ProcessResult up = verb("up", {"-d", "--run-dir", folder_.path() + "/my runs/a"});
  ASSERT_EQ(up.exit_code, 0) << up.err;
  const std::string programs = std::filesystem::path(binary("dtf-launch")).parent_path();
  for (const std::string action : {"status", "stop"}) {
    const size_t at = up.out.find("  dtf-launch " + action + " ");
    ASSERT_NE(at, std::string::npos) << up.out;
    const std::string command = up.out.substr(at, up.out.find('\n', at) - at);
    const ProcessResult result = runProcess({"/bin/sh", "-c", command}, seconds(60),
                                            {{"PATH", programs + ":/usr/bin:/bin"}}, "/");
    EXPECT_EQ(result.exit_code, 0) << command << result.err;
  }
}

// Without a launcher no file holds the progress: status shows the tasks' own answers.
TEST_F(FoundRunsTest, StatusOfAJobByHandIsWhatItsTasksAnswer) {
  ClusterOptions by_hand = options();
  by_hand.ports = freePorts(4);
  writeCluster(by_hand);
  std::vector<Process> tasks = startFour(file_);
  ASSERT_TRUE(tasks[kChiefTask].waitForOutput("step=", seconds(30))) << tasks[kChiefTask].err();
  statusWith(
      "running, workerd has pid [\\s\\S]*\n  progress    step [0-9]+/100000000 0% . loss "
      "[0-9.e-]+ . [0-9.]+ examples/s . ps 2/2 worker 2/2 . [0-9:]+ left\n  as of       20[\\s\\S]*"
      "\n  ps/0        step [0-9]+; workers: 2 joined"
      "[\\s\\S]*\n  worker/1    step [0-9]+; loss [0-9.e-]+; [0-9.]+ ms a step: [a-z0-9., -]+\n");
  const Json said = Json::parse(verb("status", {"--json"}).out);
  ASSERT_EQ(said["tasks"].size(), 4u) << said;
  EXPECT_TRUE(said["tasks"][0]["pid"].isNull()) << "the chief alone says which process it is";
  EXPECT_GT(said["tasks"][0]["answer"]["global_step"].asDouble(), 0) << said;
}

TEST_F(FoundRunsTest, AJobByHandIsFoundFromAnyFolder) {
  std::vector<Process> tasks = startBelowThisFolder();
  ASSERT_TRUE(tasks[kChiefTask].waitForOutput("step=", seconds(30))) << tasks[kChiefTask].err();
  const ProcessResult status = elsewhere("status");
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_NE(status.out.find("running, workerd has pid"), std::string::npos) << status.out;
  const ProcessResult logs = elsewhere("logs");
  EXPECT_EQ(logs.exit_code, 69);
  EXPECT_NE(logs.err.find("was started by hand"), std::string::npos) << logs.err;
  Process attached({binary("dtf-launch"), "attach", file_}, {}, "/");
  EXPECT_TRUE(attached.waitForOutput("examples/s", seconds(30))) << attached.err();
  const ProcessResult stop = elsewhere("stop");
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  EXPECT_NE(stop.out.find(", saved"), std::string::npos) << stop.out;
  EXPECT_EQ(attached.wait(seconds(10)).exit_code, 0) << attached.err();
  for (Process& task : tasks) EXPECT_EQ(task.wait(seconds(30)).exit_code, 0) << task.err();
}

// The registry of another user is empty; a job started by systemd units is found in the same way.
TEST_F(FoundRunsTest, AJobOfAnotherUserIsFoundAtThePortsOfItsFile) {
  std::vector<Process> tasks = startBelowThisFolder();
  ASSERT_TRUE(tasks[kChiefTask].waitForOutput("step=", seconds(30))) << tasks[kChiefTask].err();
  const TemporaryFolder empty;
  const std::map<std::string, std::string> another = {{"XDG_RUNTIME_DIR", empty.path()}};
  const ProcessResult status = elsewhere("status", {}, another);
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_TRUE(std::regex_search(
      status.out, std::regex("running, started by another user or on another host: its tasks "
                             "answer\n  progress    step [\\s\\S]*\n  worker/1    step [0-9]+")))
      << status.out;
  const ProcessResult as_json = elsewhere("status", {"--json"}, another);
  const Json said = Json::parse(as_json.out);
  EXPECT_EQ(said["running"], true) << said;
  EXPECT_TRUE(said["run_dir"].isNull()) << said;
  const ProcessResult stop = elsewhere("stop", {}, another);
  EXPECT_EQ(stop.exit_code, 69);
  EXPECT_NE(stop.err.find("job runs, but its run directory is not known here"), std::string::npos)
      << stop.err;
  // Another job's tasks at these ports are no answer.
  const ProcessResult other = elsewhere("status", {"--set", "job=other"}, another);
  EXPECT_EQ(other.exit_code, 3) << other.out << other.err;
}

}  // namespace dtf::testing
