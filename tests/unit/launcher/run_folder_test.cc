#include "launcher/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "common/base/error.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

class RunFolderTest : public ::testing::Test {
 protected:
  RunFolderTest() {
    std::string pattern = (fs::temp_directory_path() / "dtf-run-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~RunFolderTest() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(RunFolderTest, OneLauncherAtATimeAndTheOtherIsNamed) {
  {
    RunFolder first(folder_ / "run");
    first.record({"job", 4242, {}});
    try {
      RunFolder second(folder_ / "run");
      FAIL() << "must throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.message(), ::testing::HasSubstr("dtf-launch, pid 4242"));
    }
  }
  RunFolder third(folder_ / "run");
}

TEST_F(RunFolderTest, WhoRunsInAFolderIsNamed) {
  checkNothingRuns(folder_);
  RunFolder held(folder_);
  held.record({"job", 4242, {}});
  try {
    checkNothingRuns(folder_);
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("already, pid 4242"));
  }
}

TEST_F(RunFolderTest, SummaryOfAnEarlierRunGoesWhenThisOneBegins) {
  std::ofstream(folder_ / "summary.json") << "old";
  {
    RunFolder run(folder_);
    EXPECT_TRUE(fs::is_directory(run.logs()));
    EXPECT_TRUE(fs::exists(folder_ / "summary.json")) << "this one may be refused";
    run.begin(false);
    EXPECT_FALSE(fs::exists(folder_ / "summary.json"));
    Json summary{{"exit_code", 0}};
    EXPECT_EQ(run.writeSummary(summary), "");
  }
  EXPECT_TRUE(fs::exists(folder_ / "summary.json"));
  EXPECT_FALSE(fs::exists(folder_ / ".summary.room"));
}

TEST_F(RunFolderTest, SummaryOfAnEarlierRunComesBackWhereThisOneIsRefused) {
  std::ofstream(folder_ / "summary.json") << "old";
  RunFolder run(folder_);
  run.begin(false);
  Json summary{{"exit_code", 78}};
  EXPECT_EQ(run.writeSummary(summary, true), "");
  EXPECT_TRUE(run.isKept());
  EXPECT_EQ(fs::file_size(folder_ / "summary.json"), 3u);
  EXPECT_EQ(run.writeSummary(summary, false), "") << "it was not refused after all";
  EXPECT_FALSE(run.isKept());
  EXPECT_GT(fs::file_size(folder_ / "summary.json"), 3u);
}

// Nobody has written one since: it is still the last that there is.
TEST_F(RunFolderTest, WhatAKilledLaunchHasSetAsideComesBackToo) {
  std::ofstream(folder_ / ".summary.json.before") << "older";
  {
    RunFolder run(folder_);
    run.begin(false);
    Json summary{{"exit_code", 78}};
    EXPECT_EQ(run.writeSummary(summary, true), "");
    EXPECT_TRUE(run.isKept());
  }
  EXPECT_EQ(fs::file_size(folder_ / "summary.json"), 5u);
}

TEST_F(RunFolderTest, ALaunchThatWritesNoSummaryLeavesTheOneOfTheRunBefore) {
  std::ofstream(folder_ / "summary.json") << "old";
  { RunFolder(folder_).begin(false); }
  EXPECT_EQ(fs::file_size(folder_ / "summary.json"), 3u);
  { const EarlierSummary earlier(folder_); }
  EXPECT_EQ(fs::file_size(folder_ / "summary.json"), 3u) << "its units could not be started";
  { EarlierSummary(folder_).tasksRun(); }
  EXPECT_FALSE(fs::exists(folder_ / "summary.json")) << "the chief writes it";
}

// Units of systemd leave such summaries.
TEST_F(RunFolderTest, TasksThatHaveNothingToReportLeaveTheSummaryOfTheRunBefore) {
  const Json refused = {{"outcome", "failed"}, {"global_step", nullptr}};
  const Json failed = {{"outcome", "failed"}, {"global_step", 7}};
  const Json again = {{"outcome", "done"}, {"already_done", true}};
  const Json done = {{"outcome", "done"}};
  const auto keeps = [this](const std::string& earlier, const Json& summary) {
    std::ofstream(folder_ / "summary.json") << earlier;
    EarlierSummary(folder_).tasksRun();
    std::ofstream(folder_ / "summary.json") << summary.dump();
    const bool is_kept = settleSummaries(folder_, summary);
    std::ifstream file(folder_ / "summary.json");
    std::string text;
    std::getline(file, text);
    EXPECT_EQ(text, is_kept ? earlier : summary.dump());
    EXPECT_FALSE(fs::exists(folder_ / ".summary.json.before"));
    return is_kept;
  };
  const std::string was_done = R"({"outcome": "done", "attempt": 1})";
  const std::string had_failed = R"({"outcome": "failed"})";
  EXPECT_TRUE(keeps(was_done, refused));
  EXPECT_TRUE(keeps(had_failed, refused));
  EXPECT_FALSE(keeps(was_done, failed));
  EXPECT_TRUE(keeps(was_done, again));
  EXPECT_FALSE(keeps(had_failed, again));
  EXPECT_FALSE(keeps(was_done, done));
}

TEST_F(RunFolderTest, TheSummaryOfADoneJobStaysWhereNothingWasLeftToDo) {
  const std::string done = R"({"outcome": "done", "attempt": 1})";
  for (const std::string& earlier : {done, std::string(R"({"outcome": "failed"})")}) {
    std::ofstream(folder_ / "summary.json") << earlier;
    RunFolder run(folder_);
    run.record({.job = "job", .launcher = ::getpid(), .attempt = 2});
    run.begin(false);
    Json summary{{"exit_code", 0}, {"outcome", "done"}};
    EXPECT_EQ(run.writeSummary(summary, false, true), "");
    EXPECT_EQ(run.isKept(), earlier == done) << earlier;
    EXPECT_EQ(lastLaunch(folder_).already_done, earlier == done) << "for status";
    EXPECT_EQ(lastLaunch(folder_).attempt, 2);
    std::ifstream file(folder_ / "summary.json");
    std::string text;
    std::getline(file, text);
    EXPECT_EQ(text == earlier, earlier == done) << text;
  }
}

TEST_F(RunFolderTest, ARefusedLaunchWithoutARunBeforeItSaysSoItself) {
  RunFolder run(folder_);
  run.begin(false);
  Json summary{{"exit_code", 78}};
  EXPECT_EQ(run.writeSummary(summary, true), "");
  EXPECT_FALSE(run.isKept());
  EXPECT_TRUE(fs::exists(folder_ / "summary.json"));
}

TEST_F(RunFolderTest, TasksThatServeLeaveTheSummaryOfAJobAlone) {
  std::ofstream(folder_ / "summary.json") << "of a job";
  RunFolder run(folder_);
  run.begin(true);
  Json summary{{"exit_code", 0}};
  EXPECT_EQ(run.writeSummary(summary), "");
  EXPECT_TRUE(fs::exists(folder_ / "serve.json"));
  EXPECT_EQ(fs::file_size(folder_ / "summary.json"), 8u);
}

// The folder takes no new file, as on a full disk; the room that begin() reserved suffices.
TEST_F(RunFolderTest, ASummaryHasItsRoomOnADiskThatIsFull) {
  RunFolder run(folder_);
  run.begin(false);
  // Blocks the temporary file that would replace the summary.
  fs::create_directories(folder_ / ("summary.json.tmp." + std::to_string(::getpid())) / "x");
  Json summary{{"exit_code", 0}, {"job", "j"}};
  EXPECT_EQ(run.writeSummary(summary), "");
  EXPECT_EQ(summary["exit_code"], 0);
  std::ifstream file(folder_ / "summary.json");
  std::string first;
  std::getline(file, first);
  EXPECT_EQ(first, "{");
}

TEST_F(RunFolderTest, RootNeedsToSayThatItMeansTheFolderOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make such a folder";
  checkOwner(folder_, false);
  checkOwner(folder_ / "none", false);
  ASSERT_EQ(::chown(folder_.c_str(), 65534, 65534), 0);
  checkOwner(folder_, true);
  try {
    checkOwner(folder_, false);
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPermission);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("belongs to user 65534"));
    EXPECT_THAT(error.message(), ::testing::HasSubstr("--as-root"));
  }
}

TEST_F(RunFolderTest, FolderThatCantBeMadeIsAnError) {
  std::ofstream(folder_ / "file") << "";
  try {
    RunFolder run(folder_ / "file" / "run");
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCannotWrite);
  }
}

}  // namespace dtf::launcher
