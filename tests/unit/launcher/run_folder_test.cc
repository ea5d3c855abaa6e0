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

TEST_F(RunFolderTest, RecordIsThereForAsLongAsTheLauncher) {
  EXPECT_FALSE(runningLaunch(folder_));
  {
    RunFolder run(folder_);
    run.record(
        {"a long name, so that the next record is shorter", 1, {{"ps/0", 2}, {"worker/0", 3}}});
    run.record({"job", 7, {{"ps/0", 8}}});
    const auto record = runningLaunch(folder_);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->job, "job");
    EXPECT_EQ(record->launcher, 7);
    EXPECT_EQ(record->tasks, (std::vector<std::pair<std::string, pid_t>>{{"ps/0", 8}}));
    EXPECT_THROW(RunFolder{folder_}, Error) << "asking did not take the lock away";
  }
  EXPECT_FALSE(runningLaunch(folder_));
}

TEST_F(RunFolderTest, SummaryOfAnEarlierRunGoes) {
  std::ofstream(folder_ / "summary.json") << "old";
  const RunFolder run(folder_);
  EXPECT_FALSE(fs::exists(run.summary()));
  EXPECT_TRUE(fs::is_directory(run.logs()));
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
