#include "launcher/summary.h"

#include <gtest/gtest.h>

#include <csignal>

namespace dtf::launcher {

namespace {

JobSummary failed() {
  JobSummary summary;
  summary.end = {"mnist",
                 "failed",
                 65,
                 3.14159,
                 {{"ps/0", 0, ""},
                  {"worker/0", 65, "worker/0 was too eager"},
                  {"worker/1", {}, "was not started"}}};
  return summary;
}

}  // namespace

TEST(Summary, WithoutAWordFromTheChiefTheRestIsNull) {
  const auto json = summaryJson(failed());
  EXPECT_EQ(json["exit_code"], 65);
  EXPECT_TRUE(json["global_step"].isNull());
  EXPECT_EQ(json["tasks"][2]["cause"], "was not started");
  EXPECT_TRUE(json["tasks"][2]["exit_code"].isNull());
}

// The signal came after the end of the work; or it went to a task, which had the job saved.
TEST(Summary, TheChiefKnowsWhetherTheJobHadComeToItsEnd) {
  JobSummary summary = failed();
  summary.end.outcome = "stopped";
  summary.end.exit_code = 130;
  summary.result = ResultNotice{R"({"outcome":"done"})"};
  EXPECT_EQ(summaryJson(summary)["outcome"], "done");
  EXPECT_EQ(summaryJson(summary)["exit_code"], 0);
  summary.end.outcome = "done";
  summary.end.exit_code = 0;
  summary.result = ResultNotice{R"({"outcome":"stopped"})"};
  EXPECT_EQ(summaryJson(summary)["outcome"], "stopped");
}

TEST(Summary, LastProgressCountsWhereThereIsNoResult) {
  JobSummary summary = failed();
  ManualClock clock;
  summary.progress.add({10, 100, 0.9, 800.0, {}}, clock.now());
  clock.advance(std::chrono::seconds(4));
  summary.progress.add({50, 100, 0.5, 900.0, 0.75}, clock.now());
  const auto json = summaryJson(summary);
  EXPECT_EQ(json["global_step"], 50);
  EXPECT_EQ(json["final_loss"], 0.5);
  EXPECT_EQ(json["eval"]["accuracy"], 0.75);
  EXPECT_EQ(json["examples_per_second"], 900.0);
  EXPECT_EQ(json["steps_per_second"], 10.0);
}

TEST(Summary, ResultWinsButForWhatTheLauncherKnowsBetter) {
  JobSummary summary = failed();
  ManualClock clock;
  summary.progress.add({10, 100, 0.9, 800.0, {}}, clock.now());
  summary.result = ResultNotice{
      R"({"outcome":"done","job":"other","global_step":100,"final_loss":0.25,"eval":{"accuracy":0.9},)"
      R"("staleness_mean":1.5,"tasks":7})"};
  const auto json = summaryJson(summary);
  EXPECT_EQ(json["outcome"], "failed");
  EXPECT_EQ(json["job"], "mnist");
  EXPECT_EQ(json["global_step"], 100);
  EXPECT_EQ(json["final_loss"], 0.25);
  EXPECT_EQ(json["eval"]["accuracy"], 0.9);
  EXPECT_EQ(json["staleness_mean"], 1.5) << "what the chief adds is passed on";
  EXPECT_EQ(json["tasks"].size(), 3u);
}

TEST(Summary, NamesTheNewestCheckpointAlsoWithoutAResult) {
  JobSummary summary = failed();
  EXPECT_FALSE(summaryJson(summary).contains("checkpoint"));
  summary.checkpoint = 40;
  EXPECT_EQ(summaryJson(summary)["checkpoint"].dump(), R"({"last_step":40})");
  summary.result = ResultNotice{R"({"checkpoint":{"last_step":50,"saved":2,"failed":0}})"};
  EXPECT_EQ(summaryJson(summary)["checkpoint"]["last_step"], 50);
}

TEST(Summary, SignalsAreExitCodesAsInAShell) {
  ManualClock clock;
  TaskMonitor monitor({{JobKind::kPs, 0}}, clock, {});
  monitor.onSpawned(0);
  monitor.onExit(0, {0, SIGSEGV});
  const JobSummary summary = summarize("j", monitor, 1);
  EXPECT_EQ(summary.end.tasks[0].exit_code, 139);
  EXPECT_EQ(summary.end.tasks[0].cause, "ps/0 was killed by SIGSEGV (signal 11)");
}

}  // namespace dtf::launcher
