#include "common/base/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/base/error.h"

namespace dtf {
namespace {

namespace fs = std::filesystem;

class RunLockTest : public ::testing::Test {
 protected:
  RunLockTest() {
    folder_ = fs::temp_directory_path() / ("dtf-run-lock-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  ~RunLockTest() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(RunLockTest, TheRecordIsThereForAsLongAsTheHolder) {
  EXPECT_FALSE(runningLaunch(folder_));
  {
    RunLock run(folder_, {"job", 7, {}});
    run.record(
        {"a long name, so that the next record is shorter", 1, {{"ps/0", 2}, {"worker/0", 3}}});
    run.record({"job", 7, {{"ps/0", 8, "localhost:2221"}}, "dtf-launch", 12});
    const auto record = runningLaunch(folder_);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->job, "job");
    EXPECT_EQ(record->launcher, 7);
    ASSERT_EQ(record->tasks.size(), 1u);
    EXPECT_EQ(record->tasks[0].name, "ps/0");
    EXPECT_EQ(record->tasks[0].pid, 8);
    EXPECT_EQ(record->tasks[0].address, "localhost:2221");
    EXPECT_THROW(RunLock(folder_, {"job", 9, {}}), Error) << "asking did not take the lock away";
  }
  EXPECT_FALSE(runningLaunch(folder_));
  EXPECT_EQ(lastLaunch(folder_).attempt, 12) << "what it was is known";
  EXPECT_FALSE(lastLaunch(folder_).started.empty());
}

// A job that was started by hand has no launcher: its chief holds the folder.
TEST_F(RunLockTest, WhoeverComesSecondIsToldWhichProgramRunsWhichJob) {
  const RunLock held(folder_, {"digits", 4242, {{"worker/0", 4242}}, "workerd"});
  try {
    const RunLock second(folder_, {"other", 7, {}});
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("workerd, pid 4242, job 'digits'"));
    EXPECT_THAT(error.message(), ::testing::HasSubstr("--run-dir"));
  }
}

// rm -r of a folder that a job writes to removes the lock with it.
TEST_F(RunLockTest, ARemovedOrReplacedFolderIsNotHeldAnyMore) {
  const RunLock lock(folder_, {"job", 7, {}});
  EXPECT_TRUE(lock.held());
  fs::remove_all(folder_);
  EXPECT_FALSE(lock.held());
  const RunLock next(folder_, {"job", 8, {}});
  EXPECT_TRUE(next.held());
  EXPECT_FALSE(lock.held()) << "what is there now is another's";
}

TEST_F(RunLockTest, ProgressOfARunThatWasKilledIsNotTheNextOnes) {
  std::ofstream(folder_ / "status.json") << "{}";
  std::ofstream(folder_ / "status.json.tmp") << "{";
  const RunLock held(folder_, {"job", 7, {}});
  EXPECT_FALSE(fs::exists(folder_ / "status.json"));
  EXPECT_FALSE(fs::exists(folder_ / "status.json.tmp"));
}

TEST_F(RunLockTest, ALinkInThePlaceOfTheRecordIsNotWrittenThrough) {
  std::ofstream(folder_ / "victim") << "kept";
  fs::create_symlink(folder_ / "victim", folder_ / "launch.json");
  EXPECT_THROW(RunLock(folder_, {"job", 7, {}}), Error);
  EXPECT_EQ(fs::file_size(folder_ / "victim"), 4u);
}

}  // namespace
}  // namespace dtf
