#include "launcher/session.h"
#include "common/base/json.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

#include "common/base/error.h"
#include "launcher/listen_sockets.h"
#include "tests/unit/launcher/job_fixture.h"

// Whole launches with real processes. The tasks are scripts (fake_task.cc); each test checks the
// launcher's output, its exit code and summary.json, and that no process is left.

namespace dtf::launcher {

using ::testing::HasSubstr;
using ::testing::Not;

class Launch : public JobFixture {};

const std::string kServe = "on-term 0;ready;pause";

TEST_F(Launch, EndsWithZeroWhenEveryTaskDoes) {
  const auto status =
      run(job({"ready;await done"},
              {"ready;notify {\"event\":\"progress\",\"step\":5,\"steps\":10,\"loss\":0.5};"
               "notify {\"event\":\"result\",\"outcome\":\"done\",\"global_step\":10,"
               "\"final_loss\":0.25,\"eval\":{\"accuracy\":0.75}};touch done"}));
  EXPECT_EQ(status, ExitStatus{}) << err();
  expectNoProcess(0);
  EXPECT_THAT(out(), HasSubstr("test-job: done"));
  EXPECT_THAT(out(), HasSubstr("0.7500"));
  EXPECT_THAT(err(), HasSubstr("step 5/10 50% | loss 0.5 |"));
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["global_step"], 10);
  EXPECT_EQ(summary()["final_loss"], 0.25);
  EXPECT_EQ(summary()["tasks"].size(), 2u);
  EXPECT_EQ(summary()["tasks"][1]["exit_code"], 0);
}

TEST_F(Launch, TasksGetTheirCommandTheirSocketAndNothingElse) {
  auto spec = job({"argv;listening;fds"}, {"env PATH_ADDED"});
  spec.cluster.worker[0].env["PATH_ADDED"] = "x y";
  options_.plan.overrides = {"train.steps=5"};
  EXPECT_EQ(run(spec), ExitStatus{}) << err();
  const std::string ps_log = log("ps-0.1.log");
  EXPECT_THAT(ps_log,
              HasSubstr("--cluster\ncluster.yaml\n--task\n0\n--set\ntrain.steps=5\n--set\n"));
  EXPECT_THAT(ps_log, HasSubstr("cluster.ps.0.address=127.0.0.1:"));
  EXPECT_THAT(ps_log, HasSubstr("cluster.worker.0.address=127.0.0.1:"));
  EXPECT_THAT(ps_log, HasSubstr("listening 1\nfds 0 1 2 3 4\n"));
  EXPECT_EQ(log("worker-0.1.log"), "PATH_ADDED=x y\n");
}

TEST_F(Launch, AJobThatHasEndedHasNoTimeLeft) {
  const auto status =
      run(job({kServe}, {"ready;notify {\"event\":\"progress\",\"step\":5,\"steps\":10};"
                         "notify {\"event\":\"progress\",\"step\":6,\"steps\":10};exit 65"}));
  EXPECT_EQ(status.code, 65) << err();
  EXPECT_THAT(err(), HasSubstr("step 6/10 60%"));
  EXPECT_THAT(err(), Not(HasSubstr(" left")));
}

TEST_F(Launch, ARefusedLaunchIsNotRememberedInThePlaceOfTheOneThatRuns) {
  options_.on_held = [this] {
    std::ofstream(folder_ / "held", std::ios::app) << "x";
    return std::string("warning: as told");
  };
  const auto spec = job({kServe}, {kServe});
  const pid_t first = start(spec);
  awaitError("warning: as told");
  awaitError("tasks are ready");
  EXPECT_EQ(run(spec).code, exitCode(ErrorCode::kUnavailable)) << err();
  EXPECT_EQ(text(folder_ / "held"), "x") << "once: the second never held the folder";
  ::kill(first, SIGTERM);
  await(first);
}

TEST_F(Launch, FailingTaskIsTheRootCauseAndTheOthersAreStopped) {
  const auto status = run(job(
      {kServe},
      {kServe,
       "ready;err reading;notify {\"event\":\"failed\",\"code\":\"bad_data\",\"message\":\"images "
       "are truncated\"};exit 65"}));
  EXPECT_EQ(status.code, 65) << err();
  expectNoProcess(0);
  EXPECT_THAT(err(), HasSubstr("test-job failed: worker/1 exited with code 65 (bad_data)"));
  EXPECT_THAT(err(), HasSubstr("images are truncated"));
  EXPECT_THAT(err(), HasSubstr("    | reading\n"));
  EXPECT_THAT(err(), HasSubstr("worker-1.1.log"));
  EXPECT_EQ(summary()["outcome"], "failed");
  EXPECT_EQ(summary()["tasks"][2]["exit_code"], 65);
  EXPECT_THAT(summary()["tasks"][2]["cause"].dump(), HasSubstr("images are truncated"));
}

TEST_F(Launch, TaskKilledByASignalIsNamedWithIt) {
  auto spec = job({"ready;kill 11"}, {kServe});
  spec.launch.restarts.max = 0;
  EXPECT_EQ(run(spec).code, 128 + SIGSEGV) << err();
  expectNoProcess(0);
  EXPECT_THAT(err(), HasSubstr("ps/0 was killed by SIGSEGV (signal 11)"));
}

TEST_F(Launch, AWorkerThatIsKilledIsStartedAgainWithItsSocketAndALogOfItsOwn) {
  auto spec =
      job({"ready;await done"},
          {"ready;await done", "env DTF_ATTEMPT;listening;ready;kill-once died;await done"});
  options_.plan.fresh = true;
  const pid_t launcher = start(spec);
  // A worker whose return isn't known yet ends with the chief.
  awaitError("worker/1 is back");
  std::ofstream(folder_ / "done").flush();
  EXPECT_EQ(await(launcher), ExitStatus{}) << err();
  expectNoProcess(0);
  EXPECT_THAT(err(), HasSubstr("dtf-launch: worker/1 was killed by SIGKILL (signal 9): starting it "
                               "again in 0."));
  EXPECT_EQ(log("worker-1.1.log"), "DTF_ATTEMPT=1\nlistening 1\n");
  EXPECT_EQ(log("worker-1.2.log"), "DTF_ATTEMPT=2\nlistening 1\n");
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["tasks"][2]["restarts"], 1);
  EXPECT_EQ(summary()["tasks"][2]["exit_code"], 0);
}

TEST_F(Launch, AJobThatStandsStillSaysForWhomItsChiefWaits) {
  const pid_t launcher =
      start(job({kServe}, {"ready;notify {\"event\":\"progress\",\"step\":5,\"steps\":10};"
                           "notify {\"event\":\"waiting\",\"for\":\"worker/1 in step 5\"};pause"}));
  awaitError(" s, waiting for worker/1 in step 5");
  ::kill(launcher, SIGTERM);
  await(launcher);
}

TEST_F(Launch, TaskThatIgnoresTermIsKilledAfterTheGrace) {
  EXPECT_EQ(run(job({"ignore-term;ready;touch deaf;pause"}, {"await deaf;exit 1"})).code, 1)
      << err();
  expectNoProcess(0);
  EXPECT_EQ(summary()["tasks"][0]["exit_code"], 128 + SIGKILL);
  EXPECT_THAT(summary()["tasks"][0]["cause"].dump(), HasSubstr("stopped because of worker/0"));
}

TEST_F(Launch, GrandchildrenGoWithTheirTask) {
  EXPECT_EQ(run(job({"fork;ready"}, {"fork;ready"})), ExitStatus{}) << err();
  expectNoProcess(5);
  EXPECT_EQ(run(job({"fork;" + kServe}, {"exit 3"})).code, 3) << err();
  expectNoProcess(5);
}

TEST_F(Launch, MissingBinaryIsNamedWithWhatToDo) {
  options_.plan.binaries.workerd = folder_ / "nowhere" / "workerd";
  EXPECT_EQ(run(job({kServe}, {kServe})).code, 78);
  expectNoProcess(0);
  EXPECT_THAT(err(), HasSubstr("cannot start worker/0: cannot run " + folder_.string() +
                               "/nowhere/workerd"));
  EXPECT_THAT(err(), HasSubstr("--bin-dir"));
  EXPECT_THAT(summary()["tasks"][1]["exit_code"], Json(nullptr));
}

TEST_F(Launch, InterruptOnceStopsEveryTaskInPeace) {
  const pid_t launcher =
      start(job({"on-term 0;ready;touch a;pause"}, {"on-term 0;ready;touch b;pause"}));
  awaitFile(folder_ / "a");
  awaitFile(folder_ / "b");
  ::kill(launcher, SIGINT);
  EXPECT_EQ(await(launcher).code, 130) << err();
  expectNoProcess(0);
  EXPECT_EQ(summary()["outcome"], "interrupted");
  EXPECT_EQ(summary()["tasks"][0]["exit_code"], 0);
  EXPECT_THAT(out(), HasSubstr("test-job: interrupted"));
}

TEST_F(Launch, TermAnswersWith143) {
  const pid_t launcher = start(job({"on-term 0;touch a;pause"}, {}));
  awaitFile(folder_ / "a");
  ::kill(launcher, SIGTERM);
  EXPECT_EQ(await(launcher).code, 143) << err();
  expectNoProcess(0);
}

TEST_F(Launch, InterruptTwiceKillsNow) {
  const pid_t launcher = start(job({"ignore-term;touch a;pause"}, {"ignore-term;touch b;pause"}));
  awaitFile(folder_ / "a");
  awaitFile(folder_ / "b");
  ::kill(launcher, SIGINT);
  awaitError("stopping the tasks");
  ::kill(launcher, SIGINT);
  EXPECT_EQ(await(launcher).code, 130) << err();
  EXPECT_THAT(err(), HasSubstr("SIGINT: killing the tasks"));
  expectNoProcess(0);
}

TEST_F(Launch, KilledLauncherLeavesNoTaskAndNoGrandchild) {
  const pid_t launcher =
      start(job({"ignore-term;fork;touch a;pause"}, {"ignore-term;touch b;pause"}));
  awaitFile(folder_ / "a");
  awaitFile(folder_ / "b");
  EXPECT_EQ(processes(), 3u);
  ::kill(launcher, SIGKILL);
  await(launcher);
  expectNoProcess(5);
  EXPECT_EQ(run(job({"ready"}, {})), ExitStatus{}) << "the run directory is free again: " << err();
}

TEST_F(Launch, StartDeadlineNamesTheTasksThatAreNotReady) {
  auto spec = job({kServe}, {kServe, "on-term 0;pause", kServe});
  spec.timeouts.start_seconds = 3;  // enough for the others on a busy host
  EXPECT_EQ(run(spec).code, 124) << err();
  expectNoProcess(0);
  EXPECT_THAT(err(),
              HasSubstr("not ready within 3 s of its start (timeouts.start_seconds): worker/1\n"));
}

// A ps and two workers that log as the real ones do, one of them with a warning.
const std::string kLogLine = "2026-03-01T10:11:12.345+01:00 info task=worker/0 event=joined ps=1";
const std::string kWarning =
    "2026-03-01T10:11:13.000+01:00 warning task=worker/0 event=checkpoint_failed";
const std::string kChatty =
    "err " + kLogLine + ";err " + kWarning +
    ";notify {\"event\":\"model\",\"variables\":2,\"parameters\":7850,\"ps_bytes\":[31400]};ready"
    ";notify {\"event\":\"evaluation\",\"step\":5,\"loss\":0.25,\"accuracy\":0.91,"
    "\"auc\":0.75,\"examples\":9}"
    ";notify {\"event\":\"progress\",\"step\":6,\"steps\":10,\"loss\":0.2,\"eval_accuracy\":0.91}";

TEST_F(Launch, TheStartIsAFewLinesAndDetailsAreInTheFiles) {
  EXPECT_EQ(run(job({"ready;await done"}, {kChatty + ";touch done"})), ExitStatus{}) << err();
  EXPECT_THAT(err(), HasSubstr("dtf-launch: test-job: 1 ps, 1 worker; logs in "));
  EXPECT_THAT(err(), HasSubstr("dtf-launch: model: 2 variables, 7850 parameters (30.7 KiB)\n"));
  EXPECT_THAT(err(), HasSubstr("dtf-launch: placement: ps/0 30.7 KiB\n"));
  EXPECT_THAT(err(), HasSubstr("dtf-launch: all 2 tasks are ready ("));
  EXPECT_THAT(
      err(),
      HasSubstr("dtf-launch: evaluation at step 5: accuracy 0.9100, loss 0.25, auc 0.7500\n"));
  EXPECT_THAT(err(), Not(HasSubstr("event=joined")));
  EXPECT_THAT(err(), HasSubstr("worker/0 | 10:11:13.000 warning event=checkpoint_failed\n"))
      << "the task's name once a line";
  EXPECT_THAT(log("worker-0.1.log"), HasSubstr(kLogLine + "\n"));
}

TEST_F(Launch, VerboseShowsTheLogLinesToo) {
  options_.verbosity = Verbosity::kVerbose;
  EXPECT_EQ(run(job({"ready"}, {kChatty})), ExitStatus{}) << err();
  EXPECT_THAT(err(), HasSubstr("worker/0 | 10:11:12.345 info event=joined ps=1\n"));
}

TEST_F(Launch, QuietShowsOnlyWarningsAndTheResult) {
  options_.verbosity = Verbosity::kQuiet;
  EXPECT_EQ(run(job({"ready"}, {kChatty})), ExitStatus{}) << err();
  EXPECT_EQ(err(), "worker/0 | 10:11:13.000 warning event=checkpoint_failed\n");
  EXPECT_THAT(out(), HasSubstr("test-job: done"));
}

TEST_F(Launch, EveryLaunchHasLogFilesOfItsOwn) {
  EXPECT_EQ(run(job({}, {"err first"})), ExitStatus{}) << err();
  EXPECT_EQ(run(job({}, {"err second"})), ExitStatus{}) << err();
  EXPECT_EQ(log("worker-0.1.log"), "first\n");
  EXPECT_EQ(log("worker-0.2.log"), "second\n");
  EXPECT_EQ(summary()["attempt"], 2);
}

TEST_F(Launch, StatusFileIsThereWhileTheJobRuns) {
  const pid_t launcher = start(job({"on-term 0;ready;pause"}, {"on-term 0;" + kChatty + ";pause"}));
  awaitFile(folder_ / "run" / "status.json");
  const auto said = [this] { return Json::parseOrNull(text(folder_ / "run" / "status.json")); };
  for (int i = 0; i < 200 && said()["step"] != 6; ++i) ::usleep(50'000);
  EXPECT_EQ(said()["step"], 6);
  EXPECT_EQ(said()["eval"]["accuracy"], 0.91);
  EXPECT_EQ(said()["eval"]["auc"], 0.75);
  ::kill(launcher, SIGTERM);
  await(launcher);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run" / "status.json"))
      << "summary.json says more";
}

TEST_F(Launch, WordsOfATaskReachTheTerminalHarmless) {
  EXPECT_EQ(run(job({}, {"notify {\"event\":\"failed\",\"code\":\"bad_data\",\"message\":"
                         "\"a\\u001b[2Jb\\nnext\"};exit 65"}))
                .code,
            65);
  EXPECT_THAT(err(), HasSubstr("message    a?[2Jb\n             next\n"));
}

TEST_F(Launch, LogFilesAreWhole) {
  EXPECT_EQ(run(job({}, {"flood 20000;err to stderr;part no newline"})), ExitStatus{});
  const std::string text = log("worker-0.1.log");
  EXPECT_THAT(text, ::testing::StartsWith("line 0 of a flood\n"));
  EXPECT_THAT(text, ::testing::EndsWith("line 19999 of a flood\nto stderr\nno newline"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 20001);
  EXPECT_THAT(err(), HasSubstr("worker/0 | no newline\n"))
      << "a last line without its end is shown";
}

TEST_F(Launch, PortInUseIsReportedAtItsPlaceInTheFile) {
  auto spec = job({kServe}, {kServe});
  const ListenSockets taken = ListenSockets::open(specsOf(job({kServe}, {}).cluster), false);
  const std::string address = taken.chosen().begin()->second;
  const std::string port = address.substr(address.find(':') + 1);
  spec.cluster.worker[0].address.port = static_cast<uint16_t>(std::stoi(port));
  spec.cluster.worker[0].mark = {"local.yaml", 9, 14};
  EXPECT_EQ(run(spec).code, 69);
  EXPECT_THAT(err(), ::testing::StartsWith("local.yaml:9:14: error: port " + port +
                                           " of worker/0 is in use by pid "));
  EXPECT_EQ(summary()["outcome"], "failed");
}

TEST_F(Launch, SecondLauncherOnOneRunDirectoryIsRefused) {
  const pid_t first = start(job({"on-term 0;touch a;pause"}, {}));
  awaitFile(folder_ / "a");
  EXPECT_EQ(run(job({kServe}, {})).code, 69);
  EXPECT_THAT(err(), HasSubstr("dtf-launch, pid " + std::to_string(first)));
  ::kill(first, SIGTERM);
  await(first);
  expectNoProcess(0);
}

TEST_F(Launch, RunDirectoryThatCantBeWrittenIsRefusedBeforeAnyTask) {
  auto spec = job({"touch ran"}, {});
  std::ofstream(folder_ / "file").flush();
  spec.run_dir = folder_ / "file" / "run";
  EXPECT_EQ(run(spec).code, 73);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ran"));
}

TEST_F(Launch, JsonGivesEventsAndTheSummaryLast) {
  EXPECT_EQ(run(job({"ready"}, {"ready"}), true), ExitStatus{});
  std::istringstream lines(out());
  std::string line, events;
  Json last;
  while (std::getline(lines, line)) {
    last = Json::parse(line);
    EXPECT_EQ(last["schema"], 1);
    EXPECT_EQ(last["time"].asString().size(), 29u) << line;
    events += last["event"].asString() + " ";
  }
  EXPECT_THAT(events, ::testing::StartsWith("started started "));
  EXPECT_THAT(events, ::testing::EndsWith(" summary "));
  EXPECT_EQ(last["outcome"], "done");
}

TEST_F(Launch, ManyLaunchesSideBySideDontClash) {
  std::vector<pid_t> launchers;
  for (int i = 0; i < 20; ++i) {
    auto spec = job({"ready;listening"}, {"ready;listening"});
    spec.run_dir = folder_ / ("run" + std::to_string(i));
    launchers.push_back(start(spec));
  }
  for (const pid_t launcher : launchers) EXPECT_EQ(await(launcher), ExitStatus{});
  expectNoProcess(0);
}

}  // namespace dtf::launcher
