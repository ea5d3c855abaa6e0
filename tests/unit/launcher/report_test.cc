#include "launcher/report.h"
#include "common/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_files.h"

namespace dtf::launcher {

TEST(Report, SaysWhatTheJobReached) {
  const auto summary = Json::parse(
      R"({"job":"mnist","outcome":"done","global_step":10000,"final_loss":0.21349,)"
      R"("eval":{"loss":0.29417,"accuracy":0.92131},)"
      R"("examples_per_second":421000.4,"steps_per_second":4210.3,"wall_seconds":3.412})");
  EXPECT_EQ(resultReport(summary, "runs/mnist"),
            "mnist: done\n"
            "  steps      10000, 4210 steps/s, 421000 examples/s\n"
            "  loss       0.213\n"
            "  eval loss  0.2942\n"
            "  accuracy   0.9213\n"
            "  wall time  3.4 s\n"
            "  logs       runs/mnist/logs\n"
            "  summary    runs/mnist/summary.json\n");
}

TEST(Report, TheSlowestWorkerIsNamedWithItsPhase) {
  const auto summary =
      Json::parse(R"({"job":"j","outcome":"done","wall_seconds":1,)"
                  R"("slowest":{"worker":"worker/1","phase":"data","steps":830,"seconds":4.21}})");
  EXPECT_THAT(resultReport(summary, "run"),
              ::testing::HasSubstr(
                  "  slowest    worker/1: data, 4.21 s in 830 steps that waited for it\n"));
}

TEST(Report, AJobThatIsDoneSaysByWhichNumberOfSteps) {
  EXPECT_THAT(resumeText({2500, 2500, "", {}}),
              ::testing::StartsWith("done already at step 2500 of 2500: nothing to train; "));
  EXPECT_THAT(resumeText({3000, 2500, "", {}}),
              ::testing::StartsWith("done already at step 3000, beyond the 2500 of this file: "
                                    "nothing to train; "));
}

TEST(Report, PromisesNothingOfAFolderThatSomebodyHasRemoved) {
  const testing::TemporaryFiles files;
  const auto summary = Json::parse(
      R"({"job":"j","outcome":"stopped","global_step":20,"checkpoint":{"last_step":20},)"
      R"("wall_seconds":1})");
  const cluster::JobSpec job;
  const std::string gone = resultReport(summary, "run", remainsOf(job, summary, "run"));
  EXPECT_EQ(gone,
            "j: stopped\n"
            "  steps      20\n"
            "  checkpoint step 20, not there: run/checkpoints/step-20\n"
            "  wall time  1.0 s\n"
            "  logs       not there: run/logs\n"
            "  summary    not there: run/summary.json\n");
  std::filesystem::create_directories("run/checkpoints/step-20");
  std::filesystem::create_directories("run/logs");
  files.write("run/summary.json", "{}");
  const std::string there = resultReport(summary, "run", remainsOf(job, summary, "run"));
  EXPECT_NE(there.find("checkpoint step 20; the same command goes on from it"), std::string::npos);
  EXPECT_EQ(there.find("not there"), std::string::npos) << there;
}

// In async mode, and with backup workers, it has a few steps more.
TEST(Report, TheBestCheckpointNamesItsEvaluation) {
  Json summary = Json::parse(
      R"({"job":"j","outcome":"done","best":{"step":30,"checkpoint":30},"wall_seconds":1})");
  EXPECT_THAT(resultReport(summary, "r"),
              ::testing::HasSubstr("  best       step 30; eval, predict and export use it"));
  summary["best"]["metric"] = "auc";
  summary["best"]["auc"] = 0.76071;
  EXPECT_THAT(resultReport(summary, "r"),
              ::testing::HasSubstr("  best       step 30 (auc 0.7607); eval, predict and export"));
  summary["best"]["checkpoint"] = 34;
  EXPECT_THAT(resultReport(summary, "r"),
              ::testing::HasSubstr("  best       step 34 (auc 0.7607), from the evaluation at step "
                                   "30; eval, predict"));
}

TEST(Report, LeavesOutWhatIsNull) {
  const auto summary = Json::parse(
      R"({"job":"mnist","outcome":"interrupted","global_step":null,"final_loss":null,"eval":{},)"
      R"("examples_per_second":null,"steps_per_second":null,"wall_seconds":0.2})");
  EXPECT_EQ(resultReport(summary, "r"),
            "mnist: interrupted\n"
            "  wall time  0.2 s\n"
            "  logs       r/logs\n"
            "  summary    r/summary.json\n");
}

TEST(Report, FailureNamesTaskCauseLastLinesAndWhatToRunNext) {
  const RootCause root{1, "worker/1 exited with code 65 (bad_data)",
                       "cannot read images:\ntoo short", 65};
  EXPECT_EQ(failureReport("mnist", root,
                          {{"reading images", "giving up"},
                           "runs/my run/logs/worker-1.1.log",
                           {"ps/1 once, after it died"}}),
            "dtf-launch: error: mnist failed: worker/1 exited with code 65 (bad_data)\n"
            "  restarted  ps/1 once, after it died\n"
            "  last lines\n"
            "    | reading images\n"
            "    | giving up\n"
            "  next       less 'runs/my run/logs/worker-1.1.log'\n"
            "  message    cannot read images:\n"
            "             too short\n");
}

TEST(Report, TheMessageOfAFailureIsThereOnceAndItsRemedyLast) {
  const RootCause root{0, "worker/0 exited with code 78 (bad_config)",
                       "step-2 is of another model:\n  it has 'a'\nGive another run_dir", 78};
  const std::vector<std::string> lines = {
      "10:11:12.345 info event=joined ps=1",
      "10:11:12.346 error event=failed code=bad_config error=\"step-2 is of another model:",
      "    it has 'a'", "  Give another run_dir\""};
  EXPECT_EQ(failureReport("j", root, {.last_lines = lines}),
            "dtf-launch: error: j failed: worker/0 exited with code 78 (bad_config)\n"
            "  last lines\n"
            "    | 10:11:12.345 info event=joined ps=1\n"
            "  message    step-2 is of another model:\n"
            "               it has 'a'\n"
            "             Give another run_dir\n");
  const RootCause killed{0, "worker/0 was killed by SIGABRT (signal 6)", "", 134};
  EXPECT_THAT(failureReport("j", killed, {.last_lines = lines}),
              ::testing::HasSubstr("    |   Give another run_dir\"\n"))
      << "without a message the log has it";
}

TEST(Report, SigkillSaysWhetherTheKernelKilledForMemory) {
  const RootCause root{0, "ps/0 was killed by SIGKILL (signal 9)", "", 137};
  EXPECT_THAT(failureReport("j", root, {.out_of_memory = true}),
              ::testing::HasSubstr("out-of-memory killer was active"));
  EXPECT_THAT(failureReport("j", root, {}), ::testing::HasSubstr("did not act"));
  EXPECT_THAT(failureReport("j", root, {.host = "gpu2"}),
              ::testing::HasSubstr("\n  host       gpu2\n"));
}

}  // namespace dtf::launcher
