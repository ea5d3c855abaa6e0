#include "launcher/chief_reports.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "launcher/console.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {
namespace {

class ChiefReportsTest : public ::testing::Test {
 protected:
  cluster::JobSpec job_;
  ManualClock clock_;
  Console console_{STDERR_FILENO, false};
  EventWriter events_{STDOUT_FILENO, false};
  TaskMonitor monitor_{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}}, clock_, {}};
  ProgressDisplay display_{console_, monitor_, clock_, std::chrono::seconds(60), 0, false};
  std::vector<std::string> said_, alarms_;
  ChiefReports reports_{job_, events_, display_,
                        [this](const std::string& text) { said_.push_back(text); },
                        [this](const std::string& text) { alarms_.push_back(text); }};
};

TEST_F(ChiefReportsTest, AResultIsTheEndOfAJobThatIsSaved) {
  EXPECT_FALSE(reports_.isOver());
  reports_.onNotice(ResultNotice{"{}", "done", false}, false);
  EXPECT_FALSE(reports_.isOver()) << "its last checkpoint could not be written";
  reports_.onNotice(ResultNotice{"{}", "interrupted", true}, false);
  EXPECT_FALSE(reports_.isOver()) << "it keeps no checkpoints";
  reports_.onNotice(ResultNotice{"{}", "stopped", true}, false);
  EXPECT_TRUE(reports_.isOver());
  EXPECT_FALSE(reports_.isDone());
  reports_.onNotice(ResultNotice{"{}", "done", true}, false);
  EXPECT_TRUE(reports_.isOver());
  EXPECT_TRUE(reports_.isDone());
}

TEST_F(ChiefReportsTest, AJobBeginsWithItsFirstReportOfThisLaunch) {
  reports_.onNotice(RestoredNotice{30, 100, "", {}}, false);
  EXPECT_FALSE(reports_.hasBegun()) << "that was the run before";
  reports_.onNotice(ProgressNotice{31, 100, 0.5, 1, std::nullopt}, false);
  EXPECT_TRUE(reports_.hasBegun());
}

TEST_F(ChiefReportsTest, AJobThatWasDoneHasNothingNewToReport) {
  reports_.onNotice(ResultNotice{"{}", "done", true}, false);
  EXPECT_FALSE(reports_.wasDone());
  reports_.onNotice(ResultNotice{R"({"already_done": true})", "done", true}, false);
  EXPECT_TRUE(reports_.wasDone());
}

TEST_F(ChiefReportsTest, AJobThatPausesMeetsOnceMoreBehindItsResult) {
  job_.launch.on_sigterm = cluster::LaunchSpec::OnSigterm::kPause;
  reports_.onNotice(ResultNotice{"{}", "stopped", true}, false);
  EXPECT_FALSE(reports_.isOver());
}

TEST_F(ChiefReportsTest, AJobInOneProcessPlacesNothing) {
  job_.cluster.worker.resize(1);
  reports_.onNotice(ModelNotice{.variables = 2, .parameters = 7850, .ps_bytes = {31400}}, false);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0].find("placement"), std::string::npos) << said_[0];
  job_.cluster.ps.resize(1);
  reports_.onNotice(ModelNotice{.variables = 2, .parameters = 7850, .ps_bytes = {31400}}, false);
  ASSERT_EQ(said_.size(), 3u);
  EXPECT_EQ(said_[2], "placement: ps/0 30.7 KiB");
}

TEST_F(ChiefReportsTest, RecordsThatAreLeftOutAreNoAlarm) {
  reports_.onNotice(LeftOutNotice{1, {"t.csv:3:5: 'x' is no number"}}, false);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_NE(said_[0].find("t.csv:3:5: 'x' is no number"), std::string::npos);
  EXPECT_TRUE(alarms_.empty()) << "a quiet launch reports them in its result";
}

TEST_F(ChiefReportsTest, ASnapshotIsNoCheckpoint) {
  reports_.onNotice(WentBackNotice{400, 17, true, "to the snapshot"}, false);
  EXPECT_FALSE(reports_.checkpoint().has_value()) << "nobody looks for it on the disk";
  EXPECT_EQ(reports_.step(), 400u);
  EXPECT_EQ(alarms_, std::vector<std::string>{"to the snapshot"});
  reports_.onNotice(CheckpointNotice{410, 0.1, 0.0}, false);
  reports_.onNotice(WentBackNotice{405, 17, true, "to the snapshot"}, false);
  EXPECT_EQ(reports_.checkpoint(), 410u) << "it is still there";
  reports_.onNotice(WentBackNotice{390, 20, false, "to the checkpoint"}, false);
  EXPECT_EQ(reports_.checkpoint(), 390u);
}

TEST_F(ChiefReportsTest, TheLastStepIsThatOfTheProgress) {
  reports_.onNotice(RestoredNotice{30, 100, "", {}}, false);
  EXPECT_EQ(reports_.step(), 30u);
  reports_.onNotice(ProgressNotice{50, 100, 0.5, 1.0, std::nullopt}, false);
  EXPECT_EQ(reports_.step(), 50u);
  EXPECT_TRUE(alarms_.empty());
}

}  // namespace
}  // namespace dtf::launcher
