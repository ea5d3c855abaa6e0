// dtf-launch status, logs and stop, beside a job that runs.

#include <cstdlib>

#include "common/base/json.h"
#include "tests/e2e/verbs_fixture.h"

namespace dtf::testing {

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

// The paper's parameters, and the moving statistics of 53 batch norms.
TEST_F(VerbsTest, ExplainCountsTheParametersOfTheResNet50ThatIsShipped) {
  const auto write = [this](const std::string& name, const std::string& type,
                            const std::string& shape, size_t bytes) {
    std::string header =
        "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + "}";
    header.resize(117, ' ');
    return folder_.write(
        name, std::string("\x93NUMPY\x01\0v\0", 10) + header + "\n" + std::string(bytes, '\0'));
  };
  const std::string set = "{format: npy, features: " +
                          write("x.npy", "|u1", "(2, 224, 224, 3)", size_t{2} * 224 * 224 * 3) +
                          ", labels: " + write("y.npy", "<i4", "(2,)", 8) +
                          ", features_as: pixels}";
  const std::string job =
      std::string(std::getenv("DTF_SOURCE_ROOT")) + "/configs/jobs/imagenet_resnet50.yaml";
  const ProcessResult said =
      verb("explain", {"--json", "--set", "train=" + job, "--set",
                       "train.data={batch_size: 2, train: " + set + ", eval: " + set + "}"});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  const Json model = Json::parse(said.out);
  EXPECT_EQ(model["parameters"], 25'557'032 + 53'120);
  EXPECT_EQ(model["variables"].size(), 161u + 106u);
}

TEST_F(VerbsTest, ExplainShowsTheModelAndItsPlacementWithoutStartingAnything) {
  const ProcessResult text = verb("explain");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("softmax/weights"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("/job:ps/task:0"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("input scaling: features / 255"), std::string::npos) << text.out;
  const Json said = Json::parse(verb("explain", {"--json"}).out);
  EXPECT_EQ(said["parameters"], 7850);
  EXPECT_EQ(said["layers"].back()["output"], Json::array({10}));
  EXPECT_EQ(said["variables"].size(), 2u);
  EXPECT_NE(text.out.find("threads: each worker computes on "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("ops with one kernel each: _FusedSoftmax 1"), std::string::npos)
      << text.out;
  EXPECT_EQ(
      said["kernels"],
      Json::parse(
          R"([{"op": "_FusedSoftmax", "name": "loss/SparseSoftmaxCrossEntropyWithLogits"}])"));
  EXPECT_GT(said["step_bytes"].asDouble(), 0);
  EXPECT_EQ(said["ps_memory_bytes"], 2 * 4 * 7850);
  const std::string snapshots =
      verb("explain", {"--set", "durability={snapshot: {every_steps: 10}}"}).out;
  EXPECT_NE(snapshots.find(
                "memory of all ps: 122.7 KiB: 61.3 KiB of 2 copies of the parameters, 0 B of the "
                "optimizer's slots, 61.3 KiB of two snapshots in /dev/shm\n"),
            std::string::npos)
      << snapshots;
  EXPECT_EQ(said["threads"].size(), 2u);
  EXPECT_EQ(verb("explain", {"--set", "train.model.layers=[dense: {units: 10}]"}).exit_code, 78);
  EXPECT_EQ(verb("status").exit_code, 3) << "nothing was started";
}

TEST_F(VerbsTest, ExplainShowsTheGraphOfAStepAndWhatPassesBetweenAWorkerAndThePs) {
  const ProcessResult text = verb("explain", {"--graph"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(linesWith(text.out, "worker/0: ", " ops in a step, fed ").size(), 1u) << text.out;
  EXPECT_EQ(linesWith(text.out, "ps/", " from each worker").size(), 2u) << text.out;
  EXPECT_EQ(linesWith(text.out, "  softmax/weights, ", "30.6 KiB").size(), 1u) << text.out;
  const Json said = Json::parse(verb("explain", {"--graph", "--json"}).out);
  EXPECT_EQ(said["step"]["task"], "worker/0");
  EXPECT_EQ(said["step"]["exchanged"].size(), 2u);
  const ProcessResult dot = verb("explain", {"--graph", "--dot"});
  EXPECT_TRUE(dot.out.starts_with("digraph step {")) << dot.out;
  EXPECT_EQ(verb("explain", {"--dot"}).exit_code, 2);
  EXPECT_EQ(verb("explain", {"--graph", "--dot", "--json"}).exit_code, 2);
  EXPECT_EQ(verb("check", {"--graph"}).exit_code, 2);
}

TEST_F(VerbsTest, ExplainSaysWhichGradientsTravelAsRows) {
  std::vector<std::string> more = {
      "--set", "train.data.batch_size=4", "--set",
      "train.model.layers=[embedding: {input_dim: 100000, output_dim: 4, name: words}, flatten: , "
      "dense: {units: 10, name: out}]"};
  const ProcessResult text = verb("explain", more);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(std::regex_search(
      text.out,
      std::regex("words/embeddings +\\[100000, 4\\] +1.5 MiB +at most 3136 rows, 61.2 KiB +"
                 "/job:ps")))
      << text.out;
  more.emplace_back("--json");
  const Json said = Json::parse(verb("explain", more).out)["variables"];
  EXPECT_EQ(said[0]["gradient_rows_max"], 4 * 28 * 28);
  EXPECT_EQ(said[0]["gradient_bytes_max"], 4 * 28 * 28 * (1 + 4) * 4);
  EXPECT_FALSE(said[1].contains("gradient_rows_max")) << said[1];
  EXPECT_EQ(said[1]["gradient_bytes_max"], 28 * 28 * 4 * 10 * 4);
}

TEST_F(VerbsTest, StatusAndLogsOfAJobThatRunsAndStopSavesIt) {
  Process launcher(launchCommand(file_), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss ", seconds(30))) << launcher.err();

  const ProcessResult status = verb("status");
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_NE(status.out.find("running, dtf-launch has pid " + std::to_string(launcher.pid())),
            std::string::npos)
      << status.out;
  const Json said = Json::parse(verb("status", {"--json"}).out);
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
  const Json event = Json::parse(events.substr(0, events.find('\n')));
  const std::string line = event.stringAt("line");
  EXPECT_TRUE(line.starts_with(event["time"].asString())) << event;

  const ProcessResult stop = verb("stop");
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  EXPECT_TRUE(stop.out.starts_with("job: stopped at step ")) << stop.out;
  EXPECT_TRUE(stop.out.ends_with(", saved\n")) << stop.out;
  // The launcher itself gives the folder free just before its own end.
  for (const std::string& process : leftovers())
    EXPECT_NE(process.find("dtf-launch"), std::string::npos) << "stop waits for the end";
  EXPECT_EQ(launcher.wait(seconds(10)).exit_code, 0) << "as a daemon that is told to stop";
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

TEST_F(VerbsTest, StopSaysThatAJobWithoutCheckpointsEndedUnsaved) {
  ClusterOptions unsaved = options();
  unsaved.train_more.clear();
  writeCluster(unsaved);
  Process launcher(launchCommand(file_), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss ", seconds(30))) << launcher.err();
  const ProcessResult stop = verb("stop");
  EXPECT_EQ(stop.exit_code, 128 + SIGTERM) << stop.out << stop.err;
  EXPECT_TRUE(stop.out.starts_with("job: interrupted at step ")) << stop.out;
  EXPECT_TRUE(stop.out.ends_with(", not saved: the job has 'checkpoint: none'\n")) << stop.out;
  EXPECT_EQ(launcher.wait(seconds(5)).exit_code, stop.exit_code);
}

TEST_F(VerbsTest, FollowedLogsGoOnToTheEndOfTheJob) {
  Process launcher(launchCommand(file_), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss ", seconds(30))) << launcher.err();
  Process logs({binary("dtf-launch"), "logs", "-f", file_, "worker/1"}, {}, folder_.path());
  ASSERT_TRUE(logs.waitForOutput("event=joined", seconds(30))) << logs.out() << logs.err();
  EXPECT_TRUE(logs.running()) << "the job runs";
  EXPECT_EQ(verb("stop").exit_code, 0);
  const ProcessResult followed = logs.wait(seconds(10));
  EXPECT_EQ(followed.exit_code, 0) << followed.err;
  EXPECT_EQ(followed.out, verb("logs", {"worker/1"}).out) << "all that there is in the end";
  EXPECT_EQ(launcher.wait(seconds(10)).exit_code, 0);
}

TEST_F(VerbsTest, LogsShowAllProcessesOfATaskAndAllTasksByTime) {
  Process launcher(launchCommand(file_), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss ", seconds(30))) << launcher.err();
  Process logs({binary("dtf-launch"), "logs", "-f", file_}, {}, folder_.path());
  ASSERT_TRUE(logs.waitForOutput("event=joined", seconds(30))) << logs.out() << logs.err();
  const Json said = Json::parse(verb("status", {"--json"}).out);
  ::kill(said["tasks"][3]["pid"].asInt(), SIGKILL);
  ASSERT_TRUE(launcher.waitForOutput("worker/1 is back", seconds(30))) << launcher.err();
  EXPECT_TRUE(logs.running()) << "the job runs";
  EXPECT_EQ(verb("stop").exit_code, 0);
  const std::string followed = logs.wait(seconds(10)).out;
  const std::string all = verb("logs").out;
  EXPECT_EQ(sortedLines(followed), sortedLines(all)) << "each line once";
  EXPECT_EQ(linesWith(followed, "worker/1 | ", " event=joined ps=").size(), 2u) << followed;
  for (const char* task : {"ps/0     | ", "ps/1     | ", "worker/0 | "})
    EXPECT_GT(linesWith(all, task, " event=").size(), 0u) << task << "\n" << all;
  std::vector<std::string> times;
  for (const std::string& line : linesWith(all, "", " | 20")) times.push_back(line.substr(11, 29));
  EXPECT_GT(times.size(), 20u) << all;
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end())) << all;
  EXPECT_EQ(launcher.wait(seconds(10)).exit_code, 0);
}

// A line that is written later than another's, but of an earlier time, comes before it.
TEST_F(VerbsTest, FollowedLogsOfSeveralTasksComeByTime) {
  Process launcher(launchCommand(file_), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss ", seconds(30))) << launcher.err();
  Process logs({binary("dtf-launch"), "logs", "-f", file_}, {}, folder_.path());
  ASSERT_TRUE(logs.waitForOutput("event=joined", seconds(30))) << logs.out() << logs.err();
  const auto append = [&](const char* task, const std::string& time, const char* event) {
    std::ofstream(folder_.path() + "/runs/job/logs/" + task + ".1.log", std::ios::app)
        << time << " info event=" << event << "\n";
  };
  // Both from now: how long the second is in coming must not count.
  const std::string earlier = logTime(seconds(5)), later = logTime(seconds(6));
  append("worker-0", later, "written_first");
  append("ps-1", logTime(seconds(-3600)), "was_read");
  ASSERT_TRUE(logs.waitForOutput("event=was_read", seconds(30))) << logs.out();
  append("worker-1", earlier, "written_second");
  ASSERT_TRUE(logs.waitForOutput("event=written_first", seconds(30))) << logs.out();
  const std::string followed = logs.out();
  EXPECT_LT(followed.find("event=written_second"), followed.find("event=written_first"))
      << followed;
  EXPECT_EQ(verb("stop").exit_code, 0);
  EXPECT_EQ(launcher.wait(seconds(10)).exit_code, 0);
}

TEST_F(VerbsTest, StatusSaysInWordsHowFarTheJobIsAndWhoIsAwaited) {
  ClusterOptions sync = options();
  sync.mode = "sync";
  sync.train_more += "  eval: {every_steps: 10}\n";
  sync.top_more = "timeouts: {lease_seconds: 30}\n";
  writeCluster(sync);
  Process launcher(launchCommand(file_), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("evaluation at step", seconds(30))) << launcher.err();
  ASSERT_TRUE(launcher.waitForOutput("| loss ", seconds(30))) << launcher.err();
  // The launcher's notes and the workers' progress.
  const std::string running = statusWith(
      "\n  progress    step .* examples/s .* [0-9:]+ left\n  evaluation  step "
      "[\\s\\S]*\n  worker/1    .*; loss [0-9.e-]+; [0-9.]+ ms a step: [a-z0-9., -]+\n");
  for (const std::string& text :
       {"\n  folder      " + folder_.path() + "/runs/job\n", std::string("\n  progress    step "),
        std::string("\n  evaluation  step "), std::string("\n  as of       ")})
    EXPECT_NE(running.find(text), std::string::npos) << text << "\n" << running;
  EXPECT_TRUE(std::regex_search(
      running, std::regex("\n  ps/1        pid [0-9]+  running  step [0-9]+; workers: 2 joined")))
      << running;
  EXPECT_TRUE(std::regex_search(
      running, std::regex("\n  worker/1    pid [0-9]+  running  step [0-9]+; loss [0-9.e-]+; ")))
      << running;

  const Json said = Json::parse(verb("status", {"--json"}).out);
  EXPECT_EQ(said["tasks"][3]["answer"]["training"], true) << said;
  const pid_t frozen = said["tasks"][3].intAt("pid");
  ::kill(frozen, SIGSTOP);
  const std::string stopped = statusWith("waiting for worker/1 in step");
  EXPECT_NE(stopped.find("suspended  doesn't answer\n"), std::string::npos) << stopped;
  ::kill(frozen, SIGCONT);
  EXPECT_EQ(verb("stop").exit_code, 0);
}

TEST_F(VerbsTest, StatusSaysInWordsHowTheLastRunEnded) {
  ClusterOptions job = options();
  job.steps = 20;
  writeCluster(job);
  ASSERT_EQ(launch(file_).exit_code, 0);
  const ProcessResult done = verb("status");
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_TRUE(std::regex_search(
      done.out, std::regex("^job: not running in .*/runs/job\n  last run    done at step 20, "
                           "exit code 0, 20[0-9-]+T[0-9:.]+")))
      << done.out;
  job.optimizer = "{gradient_descent: {learning_rate: 1.0e+6}}";
  job.layers = "[flatten: , dense: {units: 30, activation: relu}, dense: {units: 10}]";
  writeCluster(job);
  EXPECT_EQ(launch(file_, {"--fresh"}).exit_code, 1);
  const ProcessResult failed = verb("status");
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_TRUE(std::regex_search(
      failed.out,
      std::regex("\n  last run    failed at step [0-9]+, exit code 1, 20[0-9-]+T[0-9:.]+")))
      << failed.out;
}

// attach writes to a pipe; the job has a terminal of its own, so no log holds the launcher's
// output.
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
  const Json said = Json::parse(up.out);
  EXPECT_EQ(said["event"], "detached");
  EXPECT_EQ(said["run_dir"], folder_.path() + "/runs/job");
  const Json status = Json::parse(verb("status", {"--json"}).out);
  EXPECT_EQ(status["running"], true);
  EXPECT_NE(status["progress"]["line"].asString().find("worker 2/2"), std::string::npos)
      << "up -d has said that every task is ready\n"
      << status;
  const ProcessResult refused = verb("up", {"-d", "--json"});
  EXPECT_EQ(refused.exit_code, 69) << refused.err;
  EXPECT_EQ(Json::parse(refused.out)["exit_code"], 69) << refused.out;
  EXPECT_TRUE(said["pid"].isUnsigned()) << up.out;
  EXPECT_EQ(verb("stop").exit_code, 0);
  expectNothingLeft();
}

// Tasks that are never ready: the user presses Ctrl-C.
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
